"""What the figures of a calibration report show, as plain numbers; nothing is drawn here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from calibrate.point_words import group_words
from calibrate.points import CollectivePoint, GemmPoint, GroupKind, MemoryBoundPoint, StepPoint
from calibrate.summary import Rated, Summary
from reports.charts import Chart, Figure, HeatMap, Histogram, Series
from simulator.units import GB

MEASURED, FORECAST = "measured", "forecast"
_PERCENT = 100.0
_BIN = 5.0
"""Percent: width of a bar of the histogram."""
_OUTERMOST = 50.0
"""Percent: errors beyond are counted in the last bars."""
_FEWEST = 2
"""Points that make a line."""


def figures_of(summary: Summary) -> tuple[Figure, ...]:
    """Return the figures of a report; those with nothing to show are left out."""
    return tuple(figure for build in FIGURES.values() for figure in build(summary))


def collective_charts(summary: Summary) -> list[Figure]:
    """Return a chart of bus bandwidth against size for each family of collectives.

    Pairs of ranks are left to `pair_map`.
    """
    charts: list[Figure] = []
    for family, rated in _families(summary.rated, CollectivePoint).items():
        groups: dict[str, list[Rated]] = {}
        for each in rated:
            point = each.checked.record.point
            assert isinstance(point, CollectivePoint)
            if point.group is not GroupKind.PAIR:
                groups.setdefault(group_words(point), []).append(each)
        if not groups:
            continue
        series = [
            line for name, members in groups.items() for line in _over_size(name, members, GB)
        ]
        charts.append(
            Chart(
                title=family,
                x_label="bytes",
                y_label="bus bandwidth, GB/s",
                series=tuple(series),
                log_x=True,
                log_y=True,
            )
        )
    return charts


def gemm_chart(summary: Summary) -> list[Figure]:
    """Return the share of the peak of each product, forecast against measured."""
    series = []
    for family, rated in _families(summary.rated, GemmPoint).items():
        pairs = [
            (each.rate.value / each.rate.nominal, each.fitted / each.rate.nominal)
            for each in rated
            if each.rate.nominal and each.fitted is not None
        ]
        series += _marks(family, pairs)
    return _against("Matrix products: share of the peak", "share of the peak", series)


def memory_chart(summary: Summary) -> list[Figure]:
    """Return the bandwidth of memory-bound operators against the bytes they move."""
    series = [
        line
        for family, rated in _families(summary.rated, MemoryBoundPoint).items()
        for line in _over_size(family.removeprefix("memory bound "), rated, GB)
    ]
    if not series:
        return []
    return [
        Chart(
            title="Memory-bound operators",
            x_label="bytes moved",
            y_label="bandwidth, GB/s",
            series=tuple(series),
            log_x=True,
        )
    ]


def step_chart(summary: Summary) -> list[Figure]:
    """Return the seconds of training steps, forecast against measured."""
    pairs = [
        (point.pair.measured, point.pair.predicted)
        for point in summary.check.points
        if point.pair is not None and isinstance(point.record.point, StepPoint)
    ]
    return _against("Training steps", "seconds", _marks("step", pairs), log=True)


def residual_histogram(summary: Summary) -> list[Figure]:
    """Return how many points have which signed error."""
    errors = [_PERCENT * point.pair.signed_error for point in summary.check.points if point.pair]
    if not errors:
        return []
    bars = int(2 * _OUTERMOST / _BIN)
    counts = [0] * bars
    for error in errors:
        counts[min(bars - 1, max(0, int((error + _OUTERMOST) // _BIN)))] += 1
    return [
        Histogram(
            title="Errors of all points",
            x_label=f"error in percent (beyond {_OUTERMOST:g} in the last bars)",
            edges=tuple(_BIN * index - _OUTERMOST for index in range(bars + 1)),
            counts=tuple(counts),
        )
    ]


def pair_map(summary: Summary) -> list[Figure]:
    """Return the bandwidth between pairs of ranks where pairs were measured."""
    if not summary.pairs:
        return []
    ranks = sorted({rank for pair in summary.pairs for rank in (pair.first, pair.second)})
    found = {(pair.first, pair.second): pair.bandwidth / GB for pair in summary.pairs}
    values = [tuple(found.get((first, second)) for second in ranks) for first in ranks]
    return [
        HeatMap(
            title="Bandwidth between pairs of ranks",
            unit="GB/s",
            ranks=tuple(ranks),
            values=tuple(values),
        )
    ]


FIGURES: dict[str, Callable[[Summary], list[Figure]]] = {
    "collectives": collective_charts,
    "gemm": gemm_chart,
    "memory": memory_chart,
    "steps": step_chart,
    "residuals": residual_histogram,
    "pairs": pair_map,
}
"""In the order of a report."""


def _families(rated: Iterable[Rated], kind: type) -> dict[str, list[Rated]]:
    found: dict[str, list[Rated]] = {}
    for each in rated:
        if isinstance(each.checked.record.point, kind):
            found.setdefault(each.checked.family, []).append(each)
    return found


def _over_size(name: str, rated: Sequence[Rated], unit: float) -> list[Series]:
    """Return the measured rates over their sizes as marks and the forecast ones as a line."""
    by_size = sorted(rated, key=_bytes)
    forecast = [each for each in by_size if each.fitted is not None]
    lines = [
        Series(
            label=f"{name}, {MEASURED}",
            group=name,
            line=False,
            x=tuple(_bytes(each) for each in by_size),
            y=tuple(each.rate.value / unit for each in by_size),
        )
    ]
    if len(forecast) >= _FEWEST:
        fitted = Series(
            label=f"{name}, {FORECAST}",
            group=name,
            line=True,
            x=tuple(_bytes(each) for each in forecast),
            y=tuple((each.fitted or 0.0) / unit for each in forecast),
        )
        lines.append(fitted)
    return lines


def _bytes(rated: Rated) -> float:
    point = rated.checked.record.point
    assert isinstance(point, CollectivePoint | MemoryBoundPoint)
    return point.bytes


def _marks(name: str, pairs: Sequence[tuple[float, float]]) -> list[Series]:
    if not pairs:
        return []
    x, y = zip(*pairs, strict=True)
    return [Series(label=name, group=name, line=False, x=x, y=y)]


def _against(title: str, unit: str, series: list[Series], *, log: bool = False) -> list[Figure]:
    """Return a chart of forecast against measured values."""
    if not series:
        return []
    return [
        Chart(
            title=title,
            x_label=f"{MEASURED}, {unit}",
            y_label=f"{FORECAST}, {unit}",
            series=tuple(series),
            log_x=log,
            log_y=log,
            diagonal=True,
        )
    ]
