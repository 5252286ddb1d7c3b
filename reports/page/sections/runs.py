"""Tables of whole runs."""

from __future__ import annotations

from collections.abc import Iterator

from reports.goodput_view import CAUSE_WORDS
from reports.page.said.shared import lasting
from reports.quantities import number, seconds
from reports.report_figures.labels import named
from reports.result_files.goodput import GoodputFile, RunPlanFacts
from reports.result_files.parts import Three
from reports.result_files.plan import PlanFile
from reports.section import Section, facts_section, figures
from reports.section import words as text_column
from reports.words import Words
from simulator.units import JOULES_PER_MWH, SECONDS_PER_HOUR, TERA

_PERCENT, _KG_PER_TONNE = 100.0, 1000.0


def whole_run(found: PlanFile, words: Words) -> Iterator[Section]:
    """Yield the whole run of a plan's best layout."""
    if found.whole_run is not None:
        yield from _run(found.whole_run, words)


def run(found: GoodputFile, words: Words) -> Iterator[Section]:
    """Yield a whole run."""
    yield from _run(found.run, words)


def _run(found: RunPlanFacts, words: Words) -> Iterator[Section]:
    rows = [
        (words("Steps"), f"{found.steps:,}"),
        (words("Tokens"), f"{found.tokens:,}"),
        (words("Accelerators"), f"{found.accelerators:,}"),
        (words("Time without failures"), lasting(found.ideal.days, words)),
        (words("Time (p10, p50, p90)"), _lasting(found.days, words)),
        (words("Goodput (p10, p50, p90)"), _three(found.goodput, _PERCENT) + " %"),
        (words("GPU-hours (p10, p50, p90)"), _three(found.accelerator_hours)),
    ]
    if found.cost is not None:
        label = words("Cost, {currency} (p10, p50, p90)", currency=found.currency)
        rows.append((label, _three(found.cost)))
    if found.energy is not None:
        site, machines = found.energy.site_j, found.energy.machines_j
        label = words("Energy of the machines, MWh (p10, p50, p90)")
        label = label if site is None else words("Energy with cooling, MWh (p10, p50, p90)")
        rows.append((label, _three(site or machines, 1 / JOULES_PER_MWH)))
        if found.energy.co2_kg is not None:
            label = words("CO2, t (p10, p50, p90)")
            rows.append((label, _three(found.energy.co2_kg, 1 / _KG_PER_TONNE)))
    if found.checkpoint is not None:
        point = found.checkpoint
        size = number(point.bytes / TERA)
        rows += [
            (words("Checkpoint"), f"{size} TB, {words.held(point.mode)}"),
            (words("Between checkpoints"), seconds(point.interval_s)),
            (words("Training waits for each"), seconds(point.stall_s)),
        ]
    if found.failures is not None:
        rows += [
            (words("Failures (p10, p50, p90)"), _three(found.failures.count)),
            (
                words("Mean time between failures, h (p10, p50, p90)"),
                _three(found.failures.mtbf_s, 1 / SECONDS_PER_HOUR),
            ),
        ]
    yield facts_section(words("The whole run in numbers"), rows)
    causes = sorted(found.wall_shares.items(), key=lambda item: -item[1])
    yield Section(
        title=words("Where the wall time goes"),
        columns=(
            text_column(words("cause"), [named(CAUSE_WORDS, cause, words) for cause, _ in causes]),
            figures("%", [f"{100 * share:.3f}" for _, share in causes]),
        ),
    )


def _three(found: Three, scale: float = 1.0) -> str:
    return " / ".join(number(value * scale) for value in (found.p10, found.p50, found.p90))


def _lasting(days: Three, words: Words) -> str:
    return " / ".join(lasting(value, words) for value in (days.p10, days.p50, days.p90))
