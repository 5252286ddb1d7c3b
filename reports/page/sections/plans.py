"""Tables of plans and of whole runs."""

from __future__ import annotations

from collections.abc import Iterator

from reports.layout_words import layout_words
from reports.quantities import number, percent, seconds, unit_of_days
from reports.report_figures.labels import OBJECTIVES
from reports.result_files.explain import ChangedStep, ExplainFile
from reports.result_files.plan import PlanFile
from reports.section import NONE, Section, figures
from reports.section import words as text_column
from reports.table import Column
from reports.words import Words
from simulator.units import GIB, SECONDS_PER_HOUR

_PERCENT, _KG_PER_TONNE, _HOURS = 100.0, 1000.0, 1 / SECONDS_PER_HOUR
_ROUNDING = 1e-12
"""Seconds below which a difference is that of two equal times."""


def layouts(found: PlanFile, words: Words) -> Iterator[Section]:
    """Yield the best layouts."""
    rows = found.layouts
    if not rows:
        return
    columns = [
        figures("#", [str(row.rank) for row in rows]),
        text_column(words("layout"), [row.full_name for row in rows]),
        figures(words("step, s"), [number(row.step_time_s) for row in rows]),
        figures(words("80 % interval"), [f"{number(r.low)} - {number(r.high)}" for r in rows]),
        figures(words("Tokens/s"), [f"{row.tokens_per_s:,.0f}" for row in rows]),
        figures(words("MFU"), [percent(row.mfu) for row in rows]),
        figures(words("peak, GiB"), [number(row.peak_memory_bytes / GIB) for row in rows]),
        figures(words("exposed comm., s"), [_clean(r.exposed_communication_s) for r in rows]),
        figures(words("bubble, s"), [_clean(row.bubble_s) for row in rows]),
        figures(words("accelerators"), [f"{row.accelerators:,}" for row in rows]),
    ]
    if any(row.days is not None for row in rows):
        unit, of_a_day = unit_of_days([row.days for row in rows if row.days is not None])
        times = [NONE if row.days is None else number(row.days * of_a_day) for row in rows]
        columns.append(figures(words(unit), times))
    if any(row.cost is not None for row in rows):
        columns.append(figures(found.currency, [_maybe(row.cost) for row in rows]))
    if any(row.chance is not None for row in rows):
        chances = [percent(row.chance.best) if row.chance else NONE for row in rows]
        columns.append(figures(words("best with"), chances))
    played = [words("engine") if row.simulated else words("estimate") for row in rows]
    columns.append(text_column(words("method"), played))
    yield Section(title=words("The best layouts"), columns=tuple(columns))


def _clean(value: float) -> str:
    """Return seconds, 0 where they are what rounding leaves of it."""
    return number(0.0 if abs(value) < _ROUNDING else value)


def _maybe(value: float | None) -> str:
    return NONE if value is None else number(value)


def front(found: PlanFile, words: Words) -> Iterator[Section]:
    """Yield the layouts of the Pareto front."""
    if found.pareto is None:
        return
    points = found.pareto.layouts
    one, other = found.pareto.objectives
    yield Section(
        title=words(
            "Pareto front of {one} and {other}",
            one=_objective_name(one, words),
            other=_objective_name(other, words),
        ),
        columns=(
            text_column(words("layout"), [p.name or layout_words(p.layout, words) for p in points]),
            _objective(one, [point.values[0] for point in points], words),
            _objective(other, [point.values[1] for point in points], words),
            figures(words("step, s"), [number(point.step_time_s) for point in points]),
            figures(words("accelerators"), [f"{point.accelerators:,}" for point in points]),
            figures(words("peak, GiB"), [number(p.peak_memory_bytes / GIB) for p in points]),
        ),
    )


def _objective_name(name: str, words: Words) -> str:
    label, _ = OBJECTIVES.get(name, (name.replace("_", " "), 1.0))
    return words(label)


def _objective(name: str, values: list[float], words: Words) -> Column:
    label, scale = OBJECTIVES.get(name, (name, 1.0))
    scaled = [value * scale for value in values]
    whole = all(value.is_integer() for value in scaled)
    return figures(words(label), [f"{v:,.0f}" if whole else number(v) for v in scaled])


def searched(found: PlanFile, words: Words) -> Iterator[Section]:
    """Yield what was searched, and why layouts were refused."""
    facts = found.searched
    reasons = sorted(found.rejected.items(), key=lambda item: -item[1])
    examples = [
        words.held(" ".join(found.examples.get(reason, "").split())) for reason, _ in reasons
    ]
    yield Section(
        title=words("What was searched and refused"),
        text=(
            words(
                "{considered} layouts were considered, {legal} are legal, {fitting} fit; "
                "{estimated} were estimated exactly, {simulated} played by the event engine.",
                considered=f"{facts.considered:,}",
                legal=f"{facts.legal:,}",
                fitting=f"{facts.fitting:,}",
                estimated=f"{facts.estimated:,}",
                simulated=facts.simulated,
            ),
        ),
        columns=(
            text_column(words("why refused"), [words.held(reason) for reason, _ in reasons]),
            figures(words("layouts"), [f"{count:,}" for _, count in reasons]),
            text_column(words("for example"), examples),
        ),
    )


def nearest(found: PlanFile, words: Words) -> Iterator[Section]:
    """Yield the layouts that come closest where nothing fits."""
    misses = found.nearest
    if misses:
        yield Section(
            title=words("What comes closest"),
            columns=(
                text_column(words("layout"), [layout_words(miss.layout, words) for miss in misses]),
                figures(words("peak, GiB"), [number(m.peak_memory_bytes / GIB) for m in misses]),
            ),
        )


def remedies(found: PlanFile, words: Words) -> Iterator[Section]:
    """Yield what was tried where nothing fits."""
    tried = found.remedies
    if tried:
        sizes = [NONE if r.peak_memory_bytes is None else r.peak_memory_bytes / GIB for r in tried]
        yield Section(
            title=words("What would make it fit"),
            columns=(
                text_column(words("change"), [words.held(remedy.what) for remedy in tried]),
                text_column(
                    words("fits"), [words("yes") if r.fits else words("no") for r in tried]
                ),
                figures(
                    words("peak, GiB"), [s if isinstance(s, str) else number(s) for s in sizes]
                ),
            ),
        )


def what_if(found: ExplainFile, words: Words) -> Iterator[Section]:
    """Yield what each change would bring."""
    rows = found.what_if
    if not rows:
        return
    yield Section(
        title=words("What if"),
        columns=(
            text_column(words("change"), [words.held(row.name) for row in rows]),
            figures(words("step, same layout"), [_step(row.same_layout) for row in rows]),
            figures("x", [_gain(row.same_layout) for row in rows]),
            figures(words("step, best layout"), [_step(row.best_layout) for row in rows]),
            figures("x", [_gain(row.best_layout) for row in rows]),
            text_column(
                words("best layout"),
                [row.best_layout.name or words.held(row.best_layout.reason) for row in rows],
            ),
        ),
    )


def _step(changed: ChangedStep) -> str:
    return NONE if changed.step_time_s is None else seconds(changed.step_time_s)


def _gain(changed: ChangedStep) -> str:
    return NONE if changed.speedup is None else f"{changed.speedup:.3f}"
