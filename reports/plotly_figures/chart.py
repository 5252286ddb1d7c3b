"""Lines and marks over two axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reports.chart_ticks import x_ticks
from reports.charts import Chart, Rule, Series
from reports.palette import GREY, LIMIT, lines
from reports.plotly_figures.layout import LEGEND, Trace, axis_of, layout_of, shown

_DECADE = 10.0
_MOST_NAMED = 12
"""Entries of a legend that leave room for the chart."""


def chart(found: Chart) -> dict[str, Any]:
    """Return a chart: its series, the line of equal values, and straight lines on top."""
    colours = lines(series.group for series in found.series)
    data = [_series(series, colours[series.group]) for series in found.series]
    data += list(_diagonals(found))
    data += [_level(rule, found) for rule in found.rules]
    named = [trace for trace in data if trace.get("showlegend", True)]
    return {
        "data": data,
        "layout": layout_of(
            xaxis=axis_of(found.x_label, log=found.log_x, **_ticks(found)),
            yaxis=axis_of(found.y_label, log=found.log_y, **_powers(found), **_from_zero(found)),
            showlegend=1 < len(named) <= _MOST_NAMED,
            legend=LEGEND,
            hovermode="closest",
        ),
    }


def _ticks(found: Chart) -> dict[str, Any]:
    ticks = x_ticks(found)
    if not ticks:
        return {}
    ends = {"range": [-0.5, len(found.x_names) - 0.5]} if found.x_names else {}
    return {
        "tickvals": [x for x, _ in ticks],
        "ticktext": [shown(text) for _, text in ticks],
        **ends,
    }


def _powers(found: Chart) -> dict[str, Any]:
    """Return ticks at 1, 2 and 5 of each decade where a logarithmic y axis has decades."""
    values = [value for series in found.series for value in series.y if value > 0]
    wide = found.log_y and bool(values) and max(values) >= _DECADE * min(values)
    return {"dtick": "D2"} if wide else {}


def _from_zero(found: Chart) -> dict[str, Any]:
    return {"rangemode": "tozero"} if found.from_zero else {}


def _series(series: Series, colour: str) -> Trace:
    trace: Trace = {
        "type": "scatter",
        "name": shown(series.label),
        "mode": _mode(series),
        "x": list(series.x),
        "y": list(series.y),
        "line": {
            "color": GREY if series.reference else colour,
            "width": 1.2 if series.reference else 2,
            "shape": "hv" if series.steps else "linear",
            "dash": "dash" if series.reference else "solid",
        },
        "marker": {
            "color": colour,
            "size": 8,
            "opacity": 0.85,
            "symbol": "x-thin-open" if series.line and len(series.x) == 1 else "circle",
        },
    }
    if not series.label:
        trace["showlegend"] = False
    if series.texts:
        trace["text"] = [shown(text) for text in series.texts]
    if series.low:
        trace["error_y"] = _interval(series, colour)
    return trace


def _interval(series: Series, colour: str) -> dict[str, Any]:
    """Return how far each interval reaches from its point."""
    above = [high - y for high, y in zip(series.high, series.y, strict=True)]
    below = [y - low for low, y in zip(series.low, series.y, strict=True)]
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "color": colour,
        "thickness": 1.2,
        "width": 3,
    }


def _mode(series: Series) -> str:
    """Return how points are drawn: a line of one point would not be seen."""
    if not series.line or len(series.x) == 1:
        return "markers"
    return "lines+markers" if series.low else "lines"


def _diagonals(found: Chart) -> Iterator[Trace]:
    values = [value for series in found.series for value in (*series.x, *series.y)]
    if not found.diagonal or not values:
        return
    ends = [min(values), max(values)]
    factors = [1.0, 1 + found.tolerance, 1 / (1 + found.tolerance)] if found.tolerance else [1.0]
    for factor in factors:
        yield {
            "type": "scatter",
            "mode": "lines",
            "x": ends,
            "y": [end * factor for end in ends],
            "line": {"color": GREY, "width": 1, "dash": "solid" if factor == 1 else "dash"},
            "hoverinfo": "skip",
            "showlegend": False,
        }


def _level(rule: Rule, found: Chart) -> Trace:
    values = [value for series in found.series for value in series.x] or [0.0, 1.0]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": shown(rule.label),
        "x": [min(values), max(values)],
        "y": [rule.y, rule.y],
        "line": {"color": LIMIT, "width": 1.5, "dash": "dash"},
    }
