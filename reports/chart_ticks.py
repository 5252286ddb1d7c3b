"""Where an axis of a chart is marked, and with what, where the drawing should not choose."""

from __future__ import annotations

from itertools import pairwise
from math import log

from reports.charts import Chart

Ticks = tuple[tuple[float, str], ...]
_FEW = 8
"""Places of a chart up to which each is marked."""
_MOST_NAMES = 25
"""Names beside each other that can be read; hundreds also take a browser many seconds."""
_NEAREST = 0.08
"""Share of the axis by which two marks stand apart, or their texts run into each other."""
_LARGEST = 1e7
"""Numbers beyond are read as powers of ten."""


def x_ticks(chart: Chart) -> Ticks:
    """Return the places to mark on the x axis with their texts; none: the drawing chooses.

    Names stand at their places, of many at one of several. An axis over a few whole numbers,
    as of accelerators, is marked at each of them: what lies between was not forecast.
    """
    if chart.x_names:
        every = -(-len(chart.x_names) // _MOST_NAMES)
        named = list(enumerate(chart.x_names))
        return tuple((float(place), name) for place, name in named[::every])
    places = sorted({x for series in chart.series for x in series.x})
    if chart.diagonal or len(places) > _FEW:
        return ()
    if not all(x.is_integer() and 0 < x <= _LARGEST for x in places):
        return ()
    return () if _crowded(places, log_x=chart.log_x) else tuple((x, f"{x:,.0f}") for x in places)


def _crowded(places: list[float], *, log_x: bool) -> bool:
    along = list(map(log, places)) if log_x else places
    return any(high - low < _NEAREST * (along[-1] - along[0]) for low, high in pairwise(along))
