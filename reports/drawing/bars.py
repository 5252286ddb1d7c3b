"""Figures made of bars: a histogram, stacks of parts, and swings about a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.charts import Histogram, Stacks, Tornado
from reports.drawing.text import label_text, legend_below, short
from reports.palette import BRIGHT, GREY, LIMIT, area

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS = 32
"""Names of rows that can be read below each other."""
_ABOVE = 1.04, 0.06
"""Where the first mark's name stands, over the highest bar, and by how much each next is higher."""


def draw_histogram(axes: Axes, histogram: Histogram) -> None:
    """Draw bars of counts, and upright lines at the marks with their names in steps above."""
    width = histogram.edges[1] - histogram.edges[0]
    axes.bar(histogram.edges[:-1], histogram.counts, width, align="edge", color=BRIGHT[0])
    most, (first, step) = max(histogram.counts, default=0) or 1, _ABOVE
    for place, mark in enumerate(histogram.marks):
        height = most * (first + step * place)
        axes.plot([mark.y, mark.y], [0, height], color=LIMIT, linestyle="--", linewidth=1)
        axes.annotate(f" {label_text(mark.label)}", (mark.y, height), va="top", fontsize="x-small")
    if not histogram.marks:
        axes.axvline(0, color=GREY, linewidth=0.8)
    axes.locator_params(axis="y", integer=True)
    axes.set_xlabel(label_text(histogram.x_label))
    axes.set_ylabel(label_text(histogram.y_label))


def draw_stacks(axes: Axes, stacks: Stacks) -> None:
    """Draw lying bars of parts, and what each must stay below."""
    places = range(len(stacks.bars))
    ends = {True: [0.0] * len(places), False: [0.0] * len(places)}
    for number, part in enumerate(stacks.parts):
        left = [ends[value >= 0][place] for place, value in zip(places, part.values, strict=True)]
        colour = area(number if part.tone is None else part.tone)
        axes.barh(places, part.values, left=left, color=colour, label=short(part.label))
        for place, value in zip(places, part.values, strict=True):
            ends[value >= 0][place] += value
    if stacks.limit is not None:
        ends_of = [(v, row + side) for row, v in enumerate(stacks.limit.values) for side in _SIDES]
        x, y = zip(*ends_of, strict=True) if ends_of else ((), ())
        label = short(stacks.limit.label)
        axes.plot(x, y, color=LIMIT, linestyle="--", linewidth=1, label=label)
    _name_rows(axes, stacks.bars)
    axes.set_xlabel(label_text(stacks.y_label))
    legend_below(axes)


_SIDES = -0.5, 0.5


def draw_tornado(axes: Axes, tornado: Tornado) -> None:
    """Draw a bar a swing from its low to its high end, through the value that is now."""
    for place, swing in enumerate(tornado.swings):
        low = min(swing.low, swing.high, tornado.centre)
        high = max(swing.low, swing.high, tornado.centre)
        colour = BRIGHT[0] if max(swing.low, swing.high) > tornado.centre else BRIGHT[1]
        axes.barh(place, high - low, left=low, color=colour)
    axes.axvline(tornado.centre, color=GREY, linewidth=1)
    axes.use_sticky_edges = False
    axes.margins(x=0.03)
    _name_rows(axes, [swing.label for swing in tornado.swings])
    axes.set_xlabel(label_text(tornado.x_label))


def _name_rows(axes: Axes, names: tuple[str, ...] | list[str]) -> None:
    """Write names of rows from above; of many rows, of one of several."""
    places = range(0, len(names), max(1, -(-len(names) // _MOST_ROWS)))
    axes.set_yticks(list(places), [short(names[place]) for place in places], fontsize="small")
    axes.set_ylim(len(names) - 0.5, -0.5)
