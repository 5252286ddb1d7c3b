"""Bars over time in rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reports.charts import Timeline
from reports.drawing.text import label_text, legend_below, short
from reports.palette import ON_LIGHT, area

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_MARKS = 1500
"""Bars that are drawn one by one; more become a picture inside the figure."""
_MOST_ROWS = 16
_HALF = 0.42
"""Half the height of a bar, over the distance of two rows."""
_SIGNS = 110.0
"""Signs that fit beside each other along the whole time."""
_MOST_EDGES = 400
"""Bars up to which each has an edge: of more they would hide the colours."""


def draw_timeline(axes: Axes, timeline: Timeline) -> None:
    """Draw all bars of a kind at once, and what stands in those that have room for it."""
    from matplotlib.collections import PolyCollection

    tones = timeline.tones or tuple(range(len(timeline.kinds)))
    for kind in sorted(set(timeline.kind)):
        bars = [
            _rectangle(timeline.row[i], timeline.start[i], timeline.stop[i])
            for i, each in enumerate(timeline.kind)
            if each == kind
        ]
        axes.add_collection(
            PolyCollection(
                bars,
                facecolor=area(tones[kind]),
                edgecolor="white",
                linewidth=0.4 if len(timeline.row) <= _MOST_EDGES else 0.1,
                label=short(timeline.kinds[kind]),
                rasterized=len(timeline.row) > _MOST_MARKS,
            )
        )
    _write_labels(axes, timeline)
    axes.set_xlim(0, max(timeline.stop))
    axes.set_ylim(len(timeline.rows) - 0.5, -0.5)
    ticks = list(range(0, len(timeline.rows), max(1, -(-len(timeline.rows) // _MOST_ROWS))))
    names = [label_text(timeline.rows[tick]) for tick in ticks]
    axes.set_yticks(ticks, names, fontsize="small")
    axes.set_xlabel(label_text(timeline.x_label))
    legend_below(axes)


def _rectangle(row: int, start: float, stop: float) -> Sequence[tuple[float, float]]:
    low, high = row - _HALF, row + _HALF
    return (start, low), (stop, low), (stop, high), (start, high)


def _write_labels(axes: Axes, timeline: Timeline) -> None:
    end = max(timeline.stop)
    for place, label in enumerate(timeline.labels):
        start, stop = timeline.start[place], timeline.stop[place]
        if label and (stop - start) / end * _SIGNS > len(label) + 1:
            middle = (start + stop) / 2, timeline.row[place]
            style: dict[str, Any] = {
                "fontsize": 5,
                "ha": "center",
                "va": "center",
                "color": ON_LIGHT,
            }
            axes.text(*middle, label_text(label), **style)
