"""Where an axis of a chart is marked, and with what, where the drawing should not choose."""

from __future__ import annotations

from itertools import pairwise
from math import log

from reports.charts import Chart

Ticks = tuple[tuple[float, str], ...]
_FEW = 8
"""Places of a chart up to which each is marked."""
_NEAREST = 0.08
"""Share of the axis by which two marks stand apart, or their texts run into each other."""
_LARGEST = 1e7
"""Numbers beyond are read as powers of ten."""


def x_ticks(chart: Chart) -> Ticks:
    """Return the places to mark on the x axis with their texts; none: the drawing chooses.

    Names stand at their places. A logarithmic axis over a few whole numbers, as of accelerators, is
    marked at each of them: there, its powers of ten say little.
    """
    if chart.x_names:
        return tuple((float(place), name) for place, name in enumerate(chart.x_names))
    places = sorted({x for series in chart.series for x in series.x})
    if not chart.log_x or chart.diagonal or len(places) > _FEW:
        return ()
    if not all(x.is_integer() and 0 < x <= _LARGEST for x in places):
        return ()
    return () if _crowded(places) else tuple((x, f"{x:,.0f}") for x in places)


def _crowded(places: list[float]) -> bool:
    return any(
        log(high / low) < _NEAREST * log(places[-1] / places[0]) for low, high in pairwise(places)
    )
