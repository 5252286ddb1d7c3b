"""Figures made of bars: a histogram, stacks of parts, and swings about a value."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from reports.charts import Histogram, Limit, Stacks, Tornado
from reports.palette import BRIGHT, GREY, LIMIT, area
from reports.plotly_figures.layout import (
    AROUND,
    LEGEND,
    ROW,
    Trace,
    axis_of,
    layout_of,
    rows_of,
    shown,
)

_LEGEND_HEIGHT, _LEGEND_ROW = 90, 19
"""Pixels of a legend of several lines, and of one line where each entry has one (a phone)."""


def histogram(found: Histogram) -> dict[str, Any]:
    """Return bars of counts, and upright lines at the marks."""
    edges = found.edges
    widths = [high - low for low, high in pairwise(edges)]
    bars: Trace = {
        "type": "bar",
        "x": [low + width / 2 for low, width in zip(edges, widths, strict=False)],
        "y": list(found.counts),
        "width": widths,
        "marker": {"color": BRIGHT[0], "line": {"width": 0.5, "color": GREY}},
        "showlegend": False,
    }
    most = max(found.counts, default=1)
    marks = [
        {
            "type": "scatter",
            "mode": "lines+text",
            "x": [mark.y, mark.y],
            "y": [0, most],
            "text": ["", shown(mark.label)],
            "textposition": "top center",
            "line": {"color": LIMIT, "width": 1.5, "dash": "dash"},
            "hoverinfo": "x",
            "showlegend": False,
        }
        for mark in found.marks
    ]
    return {
        "data": [bars, *marks],
        "layout": layout_of(
            xaxis=axis_of(found.x_label), yaxis=axis_of(found.y_label), showlegend=False
        ),
    }


def stacks(found: Stacks) -> dict[str, Any]:
    """Return lying bars of parts, and what each must stay below."""
    rows = list(range(len(found.bars)))
    names = [shown(bar) for bar in found.bars]
    data: list[Trace] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": shown(part.label),
            "y": rows,
            "x": list(part.values),
            "customdata": names,
            "hovertemplate": "%{customdata}: %{x:.4g}",
            "marker": {"color": area(place if part.tone is None else part.tone)},
        }
        for place, part in enumerate(found.parts)
    ]
    if found.limit is not None and rows:
        data.append(_limit(found.limit))
    return {
        "data": data,
        "layout": layout_of(
            AROUND + max(_LEGEND_HEIGHT, _LEGEND_ROW * len(data)) + ROW * len(rows),
            barmode="relative",
            xaxis=axis_of(found.y_label),
            yaxis=rows_of(found.bars),
            legend={**LEGEND, "traceorder": "normal"},
        ),
    }


def _limit(limit: Limit) -> Trace:
    """Return a line down all bars, which steps aside where their limits differ."""
    half = 0.5
    ends = [(value, row + side) for row, value in enumerate(limit.values) for side in (-half, half)]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": shown(limit.label),
        "x": [value for value, _ in ends],
        "y": [row for _, row in ends],
        "line": {"color": LIMIT, "width": 1.5, "dash": "dash"},
        "hovertemplate": "%{x:.4g}",
    }


def tornado(found: Tornado) -> dict[str, Any]:
    """Return a bar a swing from its low to its high end, through the value that is now."""
    centre = found.centre
    ends = [sorted((swing.low, swing.high)) for swing in found.swings]
    reach = [(min(low, centre), max(high, centre)) for low, high in ends]
    names = [swing.label for swing in found.swings]
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(names))),
        "base": [low for low, _ in reach],
        "x": [high - low for low, high in reach],
        "customdata": [
            [low, high, shown(swing.label), shown(swing.text)]
            for (low, high), swing in zip(ends, found.swings, strict=True)
        ],
        "hovertemplate": "%{customdata[2]}: %{customdata[0]:.4g} to %{customdata[1]:.4g}"
        "<br>%{customdata[3]}<extra></extra>",
        "marker": {"color": [BRIGHT[0] if high > centre else BRIGHT[1] for _, high in ends]},
    }
    line = {
        "type": "line",
        "x0": centre,
        "x1": centre,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": GREY, "width": 1.5},
    }
    return {
        "data": [trace],
        "layout": layout_of(
            AROUND + ROW * len(names),
            showlegend=False,
            xaxis=axis_of(found.x_label),
            yaxis=rows_of(names),
            shapes=[line],
        ),
    }
