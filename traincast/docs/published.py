"""`docs/background/published-runs.md`: forecasts of whole runs beside what was published."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from pathlib import Path

from pydantic import Field

from planner.goodput import RunPlan
from planner.goodput.bill import times
from planner.goodput.replicate import Quantiles
from reports.quantities import number, percent, signed_percent
from simulator.files import FileRecord, read_record
from simulator.units import JOULES_PER_KWH, SECONDS_PER_DAY
from traincast.docs.blocks import fill_block
from traincast.docs.markdown import table
from traincast.forecasts import plan_run

PAGE = "background/published-runs.md"
BLOCK = "published"
RUNS = "examples/runs"
FIGURES = "published.toml"
_MWH, _TERA, _TONNE, _MILLION = 1e3 * JOULES_PER_KWH, 1e12, 1e3, 1e6


class Quantity(StrEnum):
    """What was published of a run."""

    FAILURES = "failures"
    FAILURES_A_DAY = "failures_a_day"
    """While the job runs."""
    GOODPUT = "goodput"
    DAYS = "days"
    ACCELERATOR_HOURS = "accelerator_hours"
    CHECKPOINT_TB = "checkpoint_tb"
    SITE_MWH = "site_mwh"
    CO2_T = "co2_t"
    COST_MUSD = "cost_musd"


class Figure(FileRecord):
    """One published number."""

    run: str
    quantity: Quantity
    published: str
    """As it was said."""
    low: float | None = None
    high: float | None = None
    source: str


class FigureFile(FileRecord):
    """All of them."""

    figure: tuple[Figure, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    name: str
    of: Callable[[RunPlan], Quantiles | None]
    text: Callable[[float], str] = number


def _failures_a_day(plan: RunPlan) -> Quantiles | None:
    if plan.failures is None:
        return None
    mtbf = plan.failures.mtbf
    low, middle, high = (SECONDS_PER_DAY / each for each in (mtbf.p90, mtbf.p50, mtbf.p10))
    return Quantiles(p10=low, p50=middle, p90=high)


def _checkpoint(plan: RunPlan) -> Quantiles | None:
    if plan.checkpoint is None:
        return None
    size = plan.checkpoint.size.total / _TERA
    return Quantiles(p10=size, p50=size, p90=size)


SHOWN = {
    Quantity.FAILURES: _Shown(
        name="failures", of=lambda plan: plan.failures.count if plan.failures else None
    ),
    Quantity.FAILURES_A_DAY: _Shown(name="failures a day", of=_failures_a_day),
    Quantity.GOODPUT: _Shown(name="goodput", of=lambda plan: plan.goodput, text=percent),
    Quantity.DAYS: _Shown(name="days", of=lambda plan: plan.days),
    Quantity.ACCELERATOR_HOURS: _Shown(
        name="accelerator-hours", of=lambda plan: plan.accelerator_hours
    ),
    Quantity.CHECKPOINT_TB: _Shown(name="checkpoint, TB", of=_checkpoint),
    Quantity.SITE_MWH: _Shown(
        name="energy, MWh", of=lambda plan: _scaled(plan.energy.site, 1.0 / _MWH)
    ),
    Quantity.CO2_T: _Shown(
        name="CO2-equivalent, t", of=lambda plan: _scaled(plan.energy.co2, 1.0 / _TONNE)
    ),
    Quantity.COST_MUSD: _Shown(
        name="cost, million USD", of=lambda plan: _scaled(plan.cost, 1.0 / _MILLION)
    ),
}


def write_published(docs: Path) -> None:
    """Fill the table of docs/background/published-runs.md in, from the examples."""
    root = docs.parent
    figures = published_figures(root)
    runs = list(dict.fromkeys(figure.run for figure in figures))
    rows = [row for run in runs for row in rows_of(root, run, figures)]
    fill_block(docs / PAGE, BLOCK, published_table(rows))


def published_figures(root: Path) -> tuple[Figure, ...]:
    """Return what was published."""
    return read_record(FigureFile, root / RUNS / FIGURES).figure


def published_table(rows: Sequence[Sequence[str]]) -> str:
    """Return the table of all rows."""
    header = ["run", "quantity", "predicted (p10 to p90)", "published", "", "source"]
    return table(header, rows)


def rows_of(root: Path, run: str, figures: Sequence[Figure]) -> list[list[str]]:
    """Return one row for each figure of a run, which is simulated for it."""
    _, _, plan = plan_run(root / RUNS / f"{run}.toml")
    return [_row(figure, plan) for figure in figures if figure.run == run]


def verdict(found: Quantiles, low: float | None, high: float | None) -> str:
    """Return whether the interval reaches what was published; else how far its middle is off.

    >>> verdict(Quantiles(p10=8.0, p50=10.0, p90=12.0), 11.0, 11.0)
    'within (-9.1 %)'
    >>> verdict(Quantiles(p10=8.0, p50=10.0, p90=12.0), 20.0, None)
    'off (-50.0 %)'
    """
    nearest = max(found.p50, -inf if low is None else low)
    nearest = min(nearest, inf if high is None else high)
    error = signed_percent(found.p50 / nearest - 1.0)
    reaches = (low is None or found.p90 >= low) and (high is None or found.p10 <= high)
    return f"{'within' if reaches else 'off'} ({error})"


def _row(figure: Figure, plan: RunPlan) -> list[str]:
    shown = SHOWN[figure.quantity]
    found = shown.of(plan)
    assert found is not None, "an example lacks what its figure is of"
    text = shown.text
    predicted = text(found.p50)
    if found.p10 < found.p90:
        predicted += f" ({text(found.p10)} to {text(found.p90)})"
    link = f"[{figure.run}](../../{RUNS}/{figure.run}.toml)"
    judged = verdict(found, figure.low, figure.high)
    return [link, shown.name, predicted, figure.published, judged, figure.source]


def _scaled(found: Quantiles | None, factor: float) -> Quantiles | None:
    return None if found is None else times(found, factor)
