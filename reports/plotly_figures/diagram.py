"""Boxes and what joins them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reports.charts import Box, Diagram
from reports.diagram_lines import LineText, line_texts, thickness
from reports.palette import BOXES, GREY, ON_LIGHT, utilised
from reports.plotly_figures.layout import AROUND, Trace, layout_of, shown

_ROW = 110
_EDGE = 0.24
"""Room for texts beside the lines, over the width of the boxes."""
_THIN, _THICK = 1.0, 6.0
"""Pixels of the narrowest and the widest line."""


def diagram(found: Diagram) -> dict[str, Any]:
    """Return lines as thick as they carry and coloured by their use, under their boxes."""
    hidden = {"visible": False}
    texts = list(line_texts(found))
    beside = any(text.x is None for text in texts)
    rows = 1 + max((box.y for box in found.boxes), default=0.0)
    return {
        "data": list(_cables(found)),
        "layout": layout_of(
            AROUND + _ROW * rows,
            showlegend=False,
            hovermode="closest",
            xaxis={**hidden, "range": [-_EDGE if beside else -0.06, 1.06]},
            yaxis={**hidden, "range": [-0.6, rows - 0.4]},
            annotations=[*map(_text, texts), *map(_box, found.boxes)],
        ),
    }


def _cables(found: Diagram) -> Iterator[Trace]:
    for cable, share in zip(found.cables, thickness(found.cables), strict=True):
        yield {
            "type": "scatter",
            "mode": "lines",
            **_ends(found.boxes[cable.one], found.boxes[cable.other]),
            "text": shown(cable.text),
            "hoverinfo": "text",
            "line": {"color": utilised(cable.used), "width": _THIN + share * (_THICK - _THIN)},
            "showlegend": False,
        }


def _ends(one: Box, other: Box) -> dict[str, list[float]]:
    """Return the ends of a line and its middle, where a pointer finds what it is."""
    return {
        "x": [one.x, (one.x + other.x) / 2, other.x],
        "y": [one.y, (one.y + other.y) / 2, other.y],
    }


def _text(text: LineText) -> dict[str, Any]:
    """Return what is written on lines, or beside them."""
    beside = {"x": -_EDGE, "xanchor": "left", "align": "left"}
    place = beside if text.x is None else {"x": text.x}
    written = "<br>".join(map(shown, text.lines))
    return {**place, "y": text.y, "text": written, "showarrow": False, "font": {"size": 10}}


def _box(box: Box) -> dict[str, Any]:
    return {
        "x": box.x,
        "y": box.y,
        "text": shown(box.label),
        "showarrow": False,
        "bgcolor": BOXES.get(box.kind, GREY),
        "bordercolor": GREY,
        "borderpad": 3,
        "font": {"color": ON_LIGHT, "size": 11},
    }
