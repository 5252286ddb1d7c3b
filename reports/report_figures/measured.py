"""Figures that set measurements beside forecasts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrate.point_words import pair_words
from reports.charts import Chart, Figure, HeatMap, Histogram, Part, Series, Stacks
from reports.quantities import signed_percent
from reports.report_figures.labels import CATEGORIES, named, tone_of
from reports.result_files.calibration import CalibrationFile, CheckedColumns, RatedColumns
from reports.result_files.trace_comparison import TraceComparisonFile
from reports.result_files.validation import ValidatedRow, ValidationFile
from reports.words import Words
from simulator.units import GB, TERA

_TOLERANCE = 0.1
_PERCENT = 100.0
_OUTERMOST = 50.0
"""Percent: errors beyond are counted in the last bars."""
_BIN = 5.0
_FLOPS, _COUNTS = "FLOP/s", "ok"
_MOST_PAIRS = 512
"""Ranks of a drawn map of pairs."""


def validation(found: ValidationFile, words: Words) -> Iterator[Figure]:
    """Yield forecast against measured times, and how the errors are spread."""
    rows = [row for row in found.rows if row.measured is not None and row.predicted is not None]
    if not rows:
        return
    yield Chart(
        name="predicted-against-measured",
        title=words("Forecast against measured"),
        x_label=words("Measured, s"),
        y_label=words("Forecast, s"),
        series=(_scatter(rows, words("runs")),),
        log_x=True,
        log_y=True,
        diagonal=True,
        tolerance=_TOLERANCE,
        caption=words("On the line both are equal; the dashed lines are 10 % off."),
    )
    yield _errors([_PERCENT * (row.signed_error or 0.0) for row in rows], words)


def _scatter(rows: list[ValidatedRow], label: str) -> Series:
    return Series(
        label=label,
        group="rows",
        line=False,
        x=tuple(row.measured or 0.0 for row in rows),
        y=tuple(row.predicted or 0.0 for row in rows),
        texts=tuple(f"{row.id}: {signed_percent(row.signed_error or 0.0)}" for row in rows),
    )


def _errors(errors: list[float], words: Words) -> Histogram:
    inside = np.clip(errors, -_OUTERMOST, _OUTERMOST)
    edges = np.arange(-_OUTERMOST, _OUTERMOST + _BIN, _BIN)
    counts, _ = np.histogram(inside, bins=edges)
    return Histogram(
        name="errors",
        title=words("Errors of the forecasts"),
        x_label=words("Forecast / measured - 1, % (beyond 50 in the last bars)"),
        y_label=words("Points"),
        edges=tuple(map(float, edges)),
        counts=tuple(map(int, counts)),
    )


def curves(found: CalibrationFile, words: Words) -> Iterator[Figure]:
    """Yield what each family reached by size, measured and as the profile forecasts it.

    Messages between two ranks are left to `pairs`: each would be a curve.
    """
    families: dict[str, list[int]] = {}
    alone = {pair_words(*two) for two in zip(found.pairs.first, found.pairs.second, strict=True)}
    for place, (family, group) in enumerate(
        zip(found.rates.family, found.rates.group, strict=True)
    ):
        if group not in alone:
            families.setdefault(family, []).append(place)
    for number, (family, places) in enumerate(families.items()):
        flops = found.rates.unit[places[0]] == _FLOPS
        yield Chart(
            name=f"curve-{number}",
            title=words.held(family),
            x_label=words("FLOP of a call") if flops else words("Bytes"),
            y_label="TFLOP/s" if flops else "GB/s",
            series=tuple(_curve(found.rates, places, TERA if flops else GB, words)),
            log_x=True,
            log_y=True,
            caption=words("Marks are measured; lines are what the profile forecasts."),
        )


def _curve(rates: RatedColumns, places: list[int], unit: float, words: Words) -> Iterator[Series]:
    groups: dict[str, list[int]] = {}
    for place in sorted(places, key=lambda place: rates.x[place]):
        groups.setdefault(rates.group[place], []).append(place)
    for group, members in groups.items():
        yield Series(
            label=words("{group}, measured", group=group) if group else words("measured"),
            group=group,
            line=False,
            x=tuple(rates.x[place] for place in members),
            y=tuple(rates.measured[place] / unit for place in members),
        )
        fitted = [(rates.x[place], rates.forecast[place]) for place in members]
        line = [(x, y / unit) for x, y in fitted if y is not None]
        if line:
            yield Series(
                label=words("{group}, forecast", group=group) if group else words("forecast"),
                group=group,
                line=True,
                x=tuple(x for x, _ in line),
                y=tuple(y for _, y in line),
            )


def checked(found: CalibrationFile, words: Words) -> Iterator[Figure]:
    """Yield every point against its forecast, and how the errors are spread."""
    points = _compared(found.checked)
    if not points:
        return
    families: dict[str, list[tuple[float, float, str]]] = {}
    for family, took, forecast, what in points:
        families.setdefault(family, []).append((took, forecast, what))
    yield Chart(
        name="points-against-forecast",
        title=words("Points of the calibration against their forecast"),
        x_label=words("Measured, s"),
        y_label=words("Forecast, s"),
        series=tuple(
            Series(
                label=family,
                group=family,
                line=False,
                x=tuple(took for took, _, _ in members),
                y=tuple(forecast for _, forecast, _ in members),
                texts=tuple(what for _, _, what in members),
            )
            for family, members in families.items()
        ),
        log_x=True,
        log_y=True,
        diagonal=True,
        tolerance=_TOLERANCE,
        caption=words("On the line both are equal; the dashed lines are 10 % off."),
    )
    yield _errors([_PERCENT * (forecast / took - 1) for _, took, forecast, _ in points], words)


def _compared(points: CheckedColumns) -> list[tuple[str, float, float, str]]:
    """Return family, measured and forecast seconds, and words of the points that have both."""
    columns = (points.family, points.measured_s, points.predicted_s, points.words, points.status)
    return [
        (family, took, forecast, what)
        for family, took, forecast, what, status in zip(*columns, strict=True)
        if took is not None and forecast is not None and status == _COUNTS
    ]


def pairs(found: CalibrationFile, words: Words) -> Iterator[Figure]:
    """Yield what each pair of ranks reached."""
    columns = found.pairs
    ranks = tuple(sorted({*columns.first, *columns.second}))
    if not ranks or len(ranks) > _MOST_PAIRS:
        return
    known = {
        (one, other): rate / GB
        for one, other, rate in zip(
            columns.first, columns.second, columns.bytes_per_second, strict=True
        )
    }
    yield HeatMap(
        name="pairs",
        title=words("Bandwidth of pairs of ranks"),
        unit="GB/s",
        ranks=ranks,
        x_label=words("to rank"),
        y_label=words("from rank"),
        values=tuple(tuple(known.get((one, other)) for other in ranks) for one in ranks),
        caption=words("A dark row or column is a slow rank, a dark cell a slow link."),
    )


def trace(found: TraceComparisonFile, words: Words) -> Iterator[Figure]:
    """Yield the seconds of each class of operators, measured and forecast."""
    yield Stacks(
        name="trace-classes",
        title=words("Where the step goes, measured and forecast"),
        y_label=words("Seconds of a step"),
        bars=(words("forecast"), words("measured")),
        parts=tuple(
            Part(
                label=named(CATEGORIES, each.name, words),
                tone=tone_of(CATEGORIES, each.name),
                values=(each.simulated_s or 0.0, each.measured_s or 0.0),
            )
            for each in found.classes
        ),
        caption=words("Time in which something else runs is counted once, as exposed time."),
    )
