"""How many marks a figure has to draw: bars, points, cells, boxes."""

from __future__ import annotations

from typing import assert_never

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


def marks_of(figure: Figure) -> int:
    """Return the marks of a figure, without lines, limits and legends."""
    match figure:
        case Chart():
            return sum(len(series.x) for series in figure.series if not series.line)
        case Histogram():
            return len(figure.counts)
        case HeatMap():
            return sum(value is not None for row in figure.values for value in row)
        case Stacks():
            return len(figure.parts) * len(figure.bars)
        case Timeline():
            return len(figure.row)
        case LayoutMap():
            return sum(len(row) for row in figure.cells)
        case Tornado():
            return len(figure.swings)
        case Diagram():
            return len(figure.boxes)
        case _:
            assert_never(figure)
