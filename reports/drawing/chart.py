"""Lines and marks over two axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reports.chart_ticks import x_ticks
from reports.charts import Chart, Series
from reports.drawing.text import label_text, legend_below, plain_numbers, short
from reports.palette import GREY, LIMIT, lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_MARKS = 1500
"""Marks that are drawn one by one; more become a picture inside the figure."""
_MOST_LABELS = 12
"""Entries of a legend that leave room for the figure."""
_WIDE_NAMES = 40
"""Signs of all names below a chart that stand beside each other without being turned."""


def draw_chart(axes: Axes, chart: Chart) -> None:
    """Draw the series, the line of equal values and straight lines on top."""
    colours = lines(series.group for series in chart.series)
    many = sum(len(series.x) for series in chart.series) > _MOST_MARKS
    for series in chart.series:
        _draw_series(axes, series, colours[series.group], many=many)
    _draw_diagonals(axes, chart)
    for rule in chart.rules:
        axes.axhline(rule.y, color=LIMIT, linestyle="--", linewidth=1, label=short(rule.label))
    _scale(axes, chart)
    axes.set_xlabel(label_text(chart.x_label))
    axes.set_ylabel(label_text(chart.y_label))
    if 1 < len(chart.series) + len(chart.rules) <= _MOST_LABELS:
        legend_below(axes)


def _draw_series(axes: Axes, series: Series, colour: str, *, many: bool) -> None:
    style: dict[str, Any] = {"color": colour, "label": short(series.label)}
    if series.reference:
        axes.plot(series.x, series.y, **style | {"color": GREY}, linestyle="--", linewidth=0.8)
        return
    if series.line:
        shape = "steps-post" if series.steps else "default"
        mark = "x" if len(series.x) == 1 else "o" if series.low else ""
        style |= {"linestyle": "-", "marker": mark, "markersize": 4, "drawstyle": shape}
    else:
        style |= {"linestyle": "", "marker": "o", "markersize": 4, "alpha": 0.8}
        style |= {"rasterized": many}
    if not series.low:
        axes.plot(series.x, series.y, **style)
        return
    below = [y - low for y, low in zip(series.y, series.low, strict=True)]
    above = [high - y for y, high in zip(series.y, series.high, strict=True)]
    axes.errorbar(series.x, series.y, [below, above], capsize=2, **style)


def _draw_diagonals(axes: Axes, chart: Chart) -> None:
    ends = [value for series in chart.series for value in (*series.x, *series.y)]
    if not chart.diagonal or not ends:
        return
    low, high = min(ends), max(ends)
    axes.plot([low, high], [low, high], color=GREY, linewidth=0.8)
    for factor in (1 + chart.tolerance, 1 / (1 + chart.tolerance)) if chart.tolerance else ():
        edge = [low * factor, high * factor]
        axes.plot([low, high], edge, color=GREY, linewidth=0.6, linestyle="--")


def _scale(axes: Axes, chart: Chart) -> None:
    if chart.log_x:
        axes.set_xscale("log")
    if chart.log_y:
        axes.set_yscale("log")
    ticks = x_ticks(chart)
    if ticks:
        names = [short(text) for _, text in ticks]
        turned = 30.0 if sum(map(len, names)) > _WIDE_NAMES and chart.x_names else 0.0
        axes.set_xticks([x for x, _ in ticks], names, rotation=turned)
        axes.set_xticks([], minor=True)
    if chart.x_names:
        axes.set_xlim(-0.5, len(chart.x_names) - 0.5)
    if chart.from_zero:
        axes.set_ylim(bottom=0)
    plain_numbers(axes.yaxis, log=chart.log_y)
    if not ticks:
        plain_numbers(axes.xaxis, log=chart.log_x)
