"""Boxes and what joins them."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from reports.charts import Diagram
from reports.diagram_lines import line_texts, thickness
from reports.drawing.text import label_lines, label_text
from reports.palette import BOXES, GREY, utilised

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_THIN, _THICK = 0.4, 4.0
"""Points of the narrowest and the widest line."""
_NARROW, _EDGE = 0.05, 0.2
"""Room left of the boxes, and with texts there, over the width of the boxes."""
_SMALL = 6
"""Points of what is written on a line."""
_LONG = 14
"""Characters of a name that fit on a box."""
_CAPTION = 120
"""Characters of a line of what colours and widths mean."""
_ON_LINE: dict[str, Any] = {"boxstyle": "square,pad=0.1", "facecolor": "white", "linewidth": 0}


def draw_diagram(axes: Axes, diagram: Diagram) -> None:
    """Draw lines as thick as they carry and coloured by their use, under their boxes."""
    for cable, share in zip(diagram.cables, thickness(diagram.cables), strict=True):
        one, other = diagram.boxes[cable.one], diagram.boxes[cable.other]
        axes.plot(
            [one.x, other.x],
            [one.y, other.y],
            color=utilised(cable.used),
            linewidth=_THIN + share * (_THICK - _THIN),
            solid_capstyle="butt",
            zorder=1,
        )
    edge = _write_texts(axes, diagram)
    _draw_boxes(axes, diagram)
    heights = [box.y for box in diagram.boxes]
    axes.set_xlim(-edge, 1.05)
    axes.set_ylim(min(heights) - 0.5, max(heights) + 0.5)
    axes.set_axis_off()
    caption = "\n".join(map(label_text, wrap(diagram.caption, _CAPTION)))
    axes.figure.supxlabel(caption, fontsize="xx-small")


def _write_texts(axes: Axes, diagram: Diagram) -> float:
    """Write what stands on lines or beside them; return the room left of the boxes."""
    edge = _NARROW
    for text in line_texts(diagram):
        written = label_lines(list(text.lines))
        if text.x is None:
            edge = _EDGE
            axes.text(-_EDGE, text.y, written, fontsize=_SMALL, ha="left", va="center")
            continue
        style: dict[str, Any] = {"fontsize": _SMALL, "ha": "center", "va": "center"}
        axes.text(text.x, text.y, written, bbox=_ON_LINE, zorder=2, **style)
    return edge


def _draw_boxes(axes: Axes, diagram: Diagram) -> None:
    for box in diagram.boxes:
        colour = BOXES.get(box.kind, GREY)
        axes.text(
            box.x,
            box.y,
            _short(box.label),
            ha="center",
            va="center",
            fontsize="xx-small",
            zorder=3,
            bbox={"boxstyle": "round,pad=0.3", "facecolor": colour, "linewidth": 0.4},
        )


def _short(label: str) -> str:
    """Return a name that fits on a box: its end is what tells it from others.

    >>> _short("pcie-0000:1a:00.0 x 2")
    '…0:1a:00.0 x 2'
    """
    return label_text(label if len(label) <= _LONG else f"…{label[1 - _LONG :]}")
