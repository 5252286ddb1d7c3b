"""Tables of forecasts side by side, and of forecasts beside measurements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reports.quantities import number, percent, seconds, signed_percent, unit_of_days
from reports.report_figures.labels import CATEGORIES, named
from reports.result_files.calibration import CalibrationFile
from reports.result_files.sweep import CompareFile, RowFacts, SweepFile
from reports.result_files.trace_comparison import TraceComparisonFile
from reports.result_files.validation import GroupFacts, ValidatedRow, ValidationFile
from reports.section import NONE, Section, figures
from reports.section import words as text_column
from reports.sweep_view import value_text
from reports.table import Column
from reports.validation_view import QUANTITIES
from reports.words import Words, english
from simulator.units import GIB

_CONSTANTS = "Constants of {profile}"


def sweep(found: SweepFile, words: Words) -> Iterator[Section]:
    """Yield every combination of a sweep."""
    keys = [
        figures(key, [value_text(row.values.get(key)) for row in found.rows]) for key in found.keys
    ]
    yield Section(title=words("Combinations"), columns=(*keys, *_forecasts(found.rows, words)))


def comparison(found: CompareFile, words: Words) -> Iterator[Section]:
    """Yield the scenarios side by side."""
    rows = found.scenarios
    titles = text_column(words("scenario"), [row.title or row.scenario for row in rows])
    yield Section(title=words("Scenarios"), columns=(titles, *_forecasts(rows, words)))


def _forecasts(rows: Sequence[RowFacts], words: Words) -> Iterator[Column]:
    yield text_column(words("profile"), [row.profile for row in rows])
    yield figures(words("accelerators"), [f"{row.accelerators:,}" for row in rows])
    yield text_column(words("layout"), [row.layout for row in rows])
    yield figures(words("step, s"), [_maybe(row.step_time_s) for row in rows])
    yield figures(words("80 % interval"), [_interval(row.low_s, row.high_s) for row in rows])
    yield figures(words("Tokens/s"), [_maybe(row.tokens_per_s) for row in rows])
    yield figures(words("MFU"), [NONE if row.mfu is None else percent(row.mfu) for row in rows])
    sizes = [None if r.peak_memory_bytes is None else r.peak_memory_bytes / GIB for r in rows]
    yield figures(words("peak, GiB"), list(map(_maybe, sizes)))
    for title, values in (
        _times([row.days for row in rows], words),
        (words("cost"), [row.cost for row in rows]),
        _times([row.run_days_p50 for row in rows], words, "{unit} with failures"),
        (words("cost with failures"), [row.run_cost for row in rows]),
    ):
        if any(value is not None for value in values):
            yield figures(title, list(map(_maybe, values)))
    yield text_column(words("outcome"), [_outcome(row, words) for row in rows])


def _times(
    days: Sequence[float | None], words: Words, title: str = "{unit}"
) -> tuple[str, list[float | None]]:
    """Return times that are kept in days, in the unit that the longest is easily read in."""
    unit, of_a_day = unit_of_days([value for value in days if value is not None])
    titled = words(title, unit=words(unit))
    return titled, [None if value is None else value * of_a_day for value in days]


def _outcome(row: RowFacts, words: Words) -> str:
    return f"{words.held(row.outcome)} {words.held(row.reason)}".strip()


def _maybe(value: float | None) -> str:
    return NONE if value is None else number(value)


def _interval(low: float | None, high: float | None) -> str:
    return NONE if low is None or high is None else f"{number(low)} - {number(high)}"


def changed(found: CompareFile, words: Words) -> Iterator[Section]:
    """Yield the keys in which scenarios differ."""
    if not found.changed:
        return
    yield Section(
        title=words("In what they differ"),
        columns=(
            text_column(words("key"), [each.key for each in found.changed]),
            *(
                text_column(row.title, [value_text(each.values[place]) for each in found.changed])
                for place, row in enumerate(found.scenarios)
            ),
        ),
    )


def groups(found: ValidationFile, words: Words) -> Iterator[Section]:
    """Yield the errors of groups of rows."""
    rows = [group for group in found.groups if group.statistics is not None]
    errors = [group.statistics for group in rows if group.statistics is not None]
    yield Section(
        title=words("Errors by group"),
        columns=(
            text_column(words("group"), [_group_name(group, words) for group in rows]),
            figures(words("rows"), [str(group.rows) for group in rows]),
            figures(words("compared"), [str(group.compared) for group in rows]),
            figures(words("median"), [percent(each.median) for each in errors]),
            figures(words("mean"), [percent(each.mean) for each in errors]),
            figures("p90", [percent(each.p90) for each in errors]),
            figures(words("worst"), [signed_percent(each.worst) for each in errors]),
            figures(words("bias"), [signed_percent(each.bias) for each in errors]),
        ),
    )


def _group_name(group: GroupFacts, words: Words) -> str:
    return f"{named(QUANTITIES, group.quantity, words)}: {words.held(group.name)}"


def rows(found: ValidationFile, words: Words) -> Iterator[Section]:
    """Yield every row, forecast or skipped."""
    each = found.rows
    yield Section(
        title=words("Measured runs"),
        columns=(
            text_column(words("run"), [row.id for row in each]),
            figures(words("Measured, s"), [_maybe(row.measured) for row in each]),
            figures(words("Forecast, s"), [_maybe(row.predicted) for row in each]),
            figures(
                words("error"),
                [NONE if r.signed_error is None else signed_percent(r.signed_error) for r in each],
            ),
            figures(words("80 % interval"), [_interval(row.low, row.high) for row in each]),
            *_memory(each, words),
            text_column(words("skipped because"), [words.held(row.reason) for row in each]),
        ),
    )


def _memory(rows: Sequence[ValidatedRow], words: Words) -> Iterator[Column]:
    """Yield measured and forecast peaks where any row reports one."""
    if all(row.measured_peak_memory_bytes is None for row in rows):
        return
    for title, sizes in (
        (words("Measured peak, GiB"), [row.measured_peak_memory_bytes for row in rows]),
        (words("Forecast peak, GiB"), [row.peak_memory_bytes for row in rows]),
    ):
        yield figures(title, [_maybe(None if size is None else size / GIB) for size in sizes])


def calibration(found: CalibrationFile, words: Words) -> Iterator[Section]:
    """Yield the sections of a calibration, as it wrote them."""
    for each in found.sections:
        yield Section(
            title=_title(each.title, found.profile, words),
            text=tuple(map(words.held, each.text)),
            columns=tuple(
                Column(
                    title=words(column.title),
                    cells=[words.held(cell) for cell in column.cells],
                    justify=column.justify,
                )
                for column in each.columns
            ),
        )


def _title(title: str, profile: str, words: Words) -> str:
    """Return the title of a section in the report's language; one of them names the profile."""
    if title == english(_CONSTANTS, profile=profile):
        return words(_CONSTANTS, profile=profile)
    return words(title)


def trace(found: TraceComparisonFile, words: Words) -> Iterator[Section]:
    """Yield the differences by class of operators, and how much of communication is hidden."""
    classes = [each for each in found.classes if each.simulated_s or each.measured_s]
    differences = [(c.measured_s or 0.0) - (c.simulated_s or 0.0) for c in classes]
    yield Section(
        title=words("Measured less forecast, by class"),
        text=tuple(map(words.held, found.notes)),
        columns=(
            text_column(words("class"), [named(CATEGORIES, c.name, words) for c in classes]),
            figures(words("forecast"), [_seconds(c.simulated_s) for c in classes]),
            figures(words("measured"), [_seconds(c.measured_s) for c in classes]),
            figures(words("difference, s"), [f"{value:+.4g}" for value in differences]),
            figures(
                words("of the step"),
                [signed_percent(value / found.measured_step_s) for value in differences],
            ),
        ),
    )
    sent = [each for each in found.classes if each.simulated_busy_s]
    if sent:
        yield Section(
            title=words("Communication, and how much of it nothing hides"),
            columns=(
                text_column(words("class"), [named(CATEGORIES, c.name, words) for c in sent]),
                figures(words("forecast"), [_seconds(c.simulated_busy_s) for c in sent]),
                figures(words("forecast, exposed"), [_seconds(c.simulated_s) for c in sent]),
                figures(words("measured"), [_seconds(c.measured_busy_s) for c in sent]),
                figures(words("measured, exposed"), [_seconds(c.measured_s) for c in sent]),
            ),
        )


def _seconds(value: float | None) -> str:
    return NONE if value is None else seconds(value)
