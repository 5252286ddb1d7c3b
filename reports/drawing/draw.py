"""Which function draws a figure, and how large it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from reports.charts import (
    Chart,
    Diagram,
    Figure,
    HeatMap,
    Histogram,
    LayoutMap,
    Stacks,
    Timeline,
    Tornado,
)
from reports.drawing.bars import draw_histogram, draw_stacks, draw_tornado
from reports.drawing.chart import draw_chart
from reports.drawing.diagram import draw_diagram
from reports.drawing.maps import draw_heat_map, draw_layout_map
from reports.drawing.text import label_text
from reports.drawing.timeline import draw_timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _HEIGHT = 7.0, 3.6
_ROW, _AROUND, _MOST_HEIGHT = 0.32, 1.9, 9.0
"""Inches of a row, of what is around the rows, and of the highest figure."""
_DIAGRAM_ROW = 1.0
_SIGNED = 0.14
"""Inches of the line that says what a sign means."""


def draw(figure: Figure, axes: Axes) -> None:
    """Draw a figure with its title."""
    match figure:
        case Chart():
            draw_chart(axes, figure)
        case Histogram():
            draw_histogram(axes, figure)
        case HeatMap():
            draw_heat_map(axes, figure)
        case Stacks():
            draw_stacks(axes, figure)
        case Timeline():
            draw_timeline(axes, figure)
        case LayoutMap():
            draw_layout_map(axes, figure)
        case Tornado():
            draw_tornado(axes, figure)
        case Diagram():
            draw_diagram(axes, figure)
        case _:
            assert_never(figure)
    axes.set_title(label_text(figure.title), fontsize="medium", loc="left", wrap=True)


def size_of(figure: Figure) -> tuple[float, float]:
    """Return the inches of a figure."""
    match figure:
        case Stacks():
            rows = (len(figure.bars) + 2) * _ROW
        case Timeline():
            rows = len(figure.rows) * _ROW
        case LayoutMap():
            rows = (len(figure.rows) + 1) * _ROW + len(figure.signs) * _SIGNED
        case Tornado():
            rows = len(figure.swings) * _ROW
        case Diagram():
            rows = (1 + max((box.y for box in figure.boxes), default=0)) * _DIAGRAM_ROW
        case Chart() | Histogram() | HeatMap():
            return _WIDTH, _HEIGHT
        case _:
            assert_never(figure)
    return _WIDTH, min(_MOST_HEIGHT, _AROUND + rows)
