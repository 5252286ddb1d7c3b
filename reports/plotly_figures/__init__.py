"""Figures as plotly draws them in a page: plain dictionaries of traces and a layout.

Colours of text, axes and paper are left to the page, which knows whether it is light or dark. All
text that comes from the input is escaped twice over: plotly would read tags in it. Each module has
the figures of one kind.
"""

from __future__ import annotations

from typing import Any, assert_never

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
from reports.plotly_figures.bars import histogram, stacks, tornado
from reports.plotly_figures.chart import chart
from reports.plotly_figures.diagram import diagram
from reports.plotly_figures.maps import heat_map, layout_map
from reports.plotly_figures.timeline import timeline


def plotly_figure(figure: Figure) -> dict[str, Any]:
    """Return `data` and `layout` of a figure, as JSON has them.

    A timeline has `bars` besides, which the page draws itself.
    """
    match figure:
        case Chart():
            return chart(figure)
        case Histogram():
            return histogram(figure)
        case HeatMap():
            return heat_map(figure)
        case Stacks():
            return stacks(figure)
        case Timeline():
            return timeline(figure)
        case LayoutMap():
            return layout_map(figure)
        case Tornado():
            return tornado(figure)
        case Diagram():
            return diagram(figure)
        case _:
            assert_never(figure)
