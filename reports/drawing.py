"""Figures drawn by matplotlib as SVG that can stand inside a page: no links, no fonts to load."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, assert_never

from reports.charts import Chart, Figure, HeatMap, Histogram
from reports.quantities import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
"""Paul Tol's "bright" scheme, which colour-blind readers can tell apart."""
_WIDTH, _HEIGHT = 7.0, 3.6
_MOST_MARKS = 1500
"""Marks of a figure that are drawn one by one; more become a picture inside it."""
_MOST_LABELS = 14
"""Entries of a legend that leave room for the figure."""
_PROLOGUE = re.compile(r"^.*?(?=<svg)", re.S)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.S)


def svg_of(figure: Figure, name: str) -> str:
    """Return a figure as an SVG element; `name` keeps the ids of one page apart.

    The same figure and name give the same text.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        canvas = Canvas(figsize=(_WIDTH, _HEIGHT), layout="constrained")
        FigureCanvasSVG(canvas)
        _draw(figure, canvas.subplots())
        written = io.StringIO()
        canvas.savefig(written, format="svg", metadata={"Date": None}, transparent=True)
    return _METADATA.sub("", _PROLOGUE.sub("", written.getvalue(), count=1)).strip()


def _draw(figure: Figure, axes: Axes) -> None:
    match figure:
        case Chart():
            _draw_chart(axes, figure)
        case Histogram():
            _draw_histogram(axes, figure)
        case HeatMap():
            _draw_map(axes, figure)
        case _:
            assert_never(figure)
    axes.set_title(label_text(figure.title), fontsize="medium", loc="left")


def label_text(text: str) -> str:
    """Return text in which matplotlib sees no formula, whatever signs are in it."""
    return plain(text).replace("$", r"\$")


def _draw_chart(axes: Axes, chart: Chart) -> None:
    groups = list(dict.fromkeys(series.group for series in chart.series))
    many = sum(len(series.x) for series in chart.series) > _MOST_MARKS
    for series in chart.series:
        colour = COLOURS[groups.index(series.group) % len(COLOURS)]
        style = {"linestyle": "-", "marker": ""} if series.line else _marks(many=many)
        axes.plot(series.x, series.y, color=colour, label=label_text(series.label), **style)
    if chart.log_x:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")
    if chart.diagonal:
        ends = [value for series in chart.series for value in (*series.x, *series.y)]
        axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color="#888888", linewidth=0.8)
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    if len(chart.series) <= _MOST_LABELS:
        axes.legend(fontsize="x-small", framealpha=0.5)


def _marks(*, many: bool) -> dict[str, object]:
    return {"linestyle": "", "marker": "o", "markersize": 4, "alpha": 0.8, "rasterized": many}


def _draw_histogram(axes: Axes, histogram: Histogram) -> None:
    width = histogram.edges[1] - histogram.edges[0]
    axes.bar(histogram.edges[:-1], histogram.counts, width, align="edge", color=COLOURS[0])
    axes.axvline(0, color="#888888", linewidth=0.8)
    axes.set_xlabel(histogram.x_label)
    axes.set_ylabel("points")


def _draw_map(axes: Axes, heat: HeatMap) -> None:
    import numpy as np

    values = np.array(heat.values, dtype=float)
    picture = axes.imshow(values, aspect="auto", cmap="viridis")
    axes.figure.colorbar(picture, ax=axes, label=heat.unit)
    ticks = range(0, len(heat.ranks), max(1, len(heat.ranks) // _MOST_LABELS))
    axes.set_xticks(list(ticks), [str(heat.ranks[tick]) for tick in ticks])
    axes.set_yticks(list(ticks), [str(heat.ranks[tick]) for tick in ticks])
    axes.set_xlabel("to rank")
    axes.set_ylabel("from rank")
