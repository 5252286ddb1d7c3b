"""What is drawn of forecasts side by side: each quantity, with its interval, as points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from planner.sweep.sweep_file import Quantity
from reports.charts import Series
from reports.result_files.sweep import RowFacts
from reports.words import Words

Ends = tuple[float, float, float]
"""A value with the lower and the upper end of its interval."""
_PERCENT = 100.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """How a quantity is drawn."""

    name: str
    title: str
    label: str
    """Of the y axis; what it costs is followed by its currency."""
    ends: Callable[[RowFacts], Ends | None]
    """None where a row has no such forecast."""


def _with_step(name: str, scale: float = 1.0) -> Callable[[RowFacts], Ends | None]:
    """Return the ends of a quantity that goes with the step time."""

    def ends(row: RowFacts) -> Ends | None:
        value, (low, high) = getattr(row, name), _of_step(row)
        return None if value is None else (scale * value, scale * value * low, scale * value * high)

    return ends


def _against_step(name: str, scale: float = 1.0) -> Callable[[RowFacts], Ends | None]:
    """Return the ends of a quantity that goes with the inverse of the step time."""

    def ends(row: RowFacts) -> Ends | None:
        value, (low, high) = getattr(row, name), _of_step(row)
        return None if value is None else (scale * value, scale * value / high, scale * value / low)

    return ends


def _with_run(name: str) -> Callable[[RowFacts], Ends | None]:
    """Return the ends of a quantity that goes with the days of the whole run."""

    def ends(row: RowFacts) -> Ends | None:
        value, least, middle, most = (
            getattr(row, name),
            row.run_days_p10,
            row.run_days_p50,
            row.run_days_p90,
        )
        if value is None or least is None or middle is None or most is None:
            return None
        return value, value * least / middle, value * most / middle

    return ends


def _of_step(row: RowFacts) -> tuple[float, float]:
    """Return the ends of the interval of the step time over the step time."""
    if not row.step_time_s or row.low_s is None or row.high_s is None:
        return 1.0, 1.0
    return row.low_s / row.step_time_s, row.high_s / row.step_time_s


DRAWN = {
    Quantity.TOKENS_PER_SECOND: Drawn(
        name="scaling-tokens",
        title="Throughput",
        label="Tokens/s",
        ends=_against_step("tokens_per_s"),
    ),
    Quantity.STEP_TIME: Drawn(
        name="scaling-step-time",
        title="Step time",
        label="Seconds of a step",
        ends=_with_step("step_time_s"),
    ),
    Quantity.MFU: Drawn(
        name="scaling-mfu", title="MFU", label="MFU, %", ends=_against_step("mfu", _PERCENT)
    ),
    Quantity.DAYS: Drawn(
        name="scaling-days", title="Days for all tokens", label="Days", ends=_with_step("days")
    ),
    Quantity.COST: Drawn(
        name="scaling-cost", title="Cost of all tokens", label="Cost", ends=_with_step("cost")
    ),
    Quantity.RUN_DAYS: Drawn(
        name="scaling-run-days",
        title="Days of the whole run",
        label="Days",
        ends=_with_run("run_days_p50"),
    ),
    Quantity.RUN_COST: Drawn(
        name="scaling-run-cost",
        title="Cost of the whole run",
        label="Cost",
        ends=_with_run("run_cost"),
    ),
}
"""In the order of a report."""


def points(
    label: str, placed: Iterable[tuple[float, RowFacts]], quantity: Quantity, *, line: bool
) -> Series:
    """Return the rows that have a quantity, each at its x, as one series in the order of x."""
    found = [(x, row, ends) for x, row in placed if (ends := DRAWN[quantity].ends(row)) is not None]
    found.sort(key=lambda point: point[0])
    places = [x for x, _, _ in found]
    return Series(
        label=label,
        group=label,
        line=line and len(set(places)) == len(places) > 1,
        x=tuple(places),
        y=tuple(ends[0] for _, _, ends in found),
        low=tuple(ends[1] for _, _, ends in found),
        high=tuple(ends[2] for _, _, ends in found),
        texts=tuple(f"{row.profile}, {row.layout}" for _, row, _ in found),
    )


def y_label(quantity: Quantity, rows: Sequence[RowFacts], words: Words) -> str:
    """Return what stands along the y axis; a cost with its currency, where all have the same."""
    costs = quantity in (Quantity.COST, Quantity.RUN_COST)
    currencies = {row.currency for row in rows if row.runs and row.currency} if costs else set()
    label = words(DRAWN[quantity].label)
    return f"{label}, {currencies.pop()}" if len(currencies) == 1 else label
