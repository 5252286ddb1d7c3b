"""Figures as plotly draws them in a page: plain dictionaries of traces and a layout.

Colours of text, axes and paper are left to the page, which knows whether it is light or dark. All
text that comes from the input is escaped twice over: plotly would read tags in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Any, assert_never

from reports.chart_ticks import x_ticks
from reports.charts import (
    Box,
    Chart,
    Diagram,
    Figure,
    HeatMap,
    Histogram,
    LayoutMap,
    Rule,
    Series,
    Stacks,
    Timeline,
    Tornado,
)
from reports.palette import BOXES, BRIGHT, GREY, LIGHT, utilised
from reports.quantities import plain

Trace = dict[str, Any]
_MOST_BARS = 4000
"""Bars of a timeline that are drawn one by one and say what they are; more are a picture."""
_THICK = 0.84
"""Height of a bar over the distance of two rows."""
_MOST_TICKS = 32
_LIMIT = "#cc3311"
_ABOVE = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
"""A legend above its figure."""
_ROW, _BASE, _LEAST = 34, 130, 380
"""Pixels of a row of a figure, of what is around its rows, and of the lowest figure."""
_MOST_HEIGHT = 1200
_EDGE, _MOST_EDGES = 0.3, 400
"""Pixels of the edge of a bar of a timeline, and bars up to which each has one: more hide them."""
_DARK = "#16171a"
"""Text on a light area, whatever the theme."""
_DECADE = 10.0
_MANY = 24
"""Rows from which on they are half as high."""


def plotly_figure(figure: Figure) -> dict[str, Any]:
    """Return `data` and `layout` of a figure, as JSON has them."""
    match figure:
        case Chart():
            return _chart(figure)
        case Histogram():
            return _histogram(figure)
        case HeatMap():
            return _heat_map(figure)
        case Stacks():
            return _stacks(figure)
        case Timeline():
            return _timeline(figure)
        case LayoutMap():
            return _layout_map(figure)
        case Tornado():
            return _tornado(figure)
        case Diagram():
            return _diagram(figure)
        case _:
            assert_never(figure)


def shown(text: str) -> str:
    """Return text in which plotly sees neither tags nor entities nor formulas.

    >>> shown("<b>$x$ & y</b>")
    '&lt;b&gt;&#36;x&#36; &amp; y&lt;/b&gt;'
    """
    return escape(plain(text), quote=False).replace("$", "&#36;")


def marks_of(figure: Figure) -> int:
    """Return how many marks a figure draws: bars, points, cells, boxes."""
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


def _layout(height: float = _LEAST, **more: Any) -> dict[str, Any]:
    return {"height": int(min(_MOST_HEIGHT, max(_LEAST, height))), "showlegend": True, **more}


def _axis(title: str, *, log: bool = False, **more: Any) -> dict[str, Any]:
    kind = {"type": "log"} if log else {}
    return {"title": {"text": shown(title)}, "automargin": True, **kind, **more}


def _chart(chart: Chart) -> dict[str, Any]:
    groups = list(dict.fromkeys(series.group for series in chart.series))
    colours = {group: BRIGHT[place % len(BRIGHT)] for place, group in enumerate(groups)}
    data = [_series(series, colours[series.group]) for series in chart.series]
    data += list(_diagonals(chart))
    data += [_level(rule, chart) for rule in chart.rules]
    named = [trace for trace in data if trace.get("showlegend", True)]
    return {
        "data": data,
        "layout": _layout(
            xaxis=_axis(chart.x_label, log=chart.log_x, **_ticks(chart)),
            yaxis=_axis(chart.y_label, log=chart.log_y, **_powers(chart)),
            showlegend=len(named) > 1,
            legend=_ABOVE,
            hovermode="closest",
        ),
    }


def _ticks(chart: Chart) -> dict[str, Any]:
    ticks = x_ticks(chart)
    if not ticks:
        return {}
    ends = {"range": [-0.5, len(chart.x_names) - 0.5]} if chart.x_names else {}
    return {
        "tickvals": [x for x, _ in ticks],
        "ticktext": [shown(text) for _, text in ticks],
        **ends,
    }


def _powers(chart: Chart) -> dict[str, Any]:
    """Return ticks at 1, 2 and 5 of each decade where a logarithmic y axis has decades."""
    values = [value for series in chart.series for value in series.y if value > 0]
    wide = chart.log_y and bool(values) and max(values) >= _DECADE * min(values)
    return {"dtick": "D2"} if wide else {}


def _series(series: Series, colour: str) -> Trace:
    trace: Trace = {
        "type": "scatter",
        "name": shown(series.label),
        "mode": _mode(series),
        "x": list(series.x),
        "y": list(series.y),
        "line": {"color": colour, "width": 2, "shape": "hv" if series.steps else "linear"},
        "marker": {
            "color": colour,
            "size": 8,
            "opacity": 0.85,
            "symbol": "x-thin-open" if series.line and len(series.x) == 1 else "circle",
        },
    }
    if series.texts:
        trace["text"] = [shown(text) for text in series.texts]
    if series.low:
        above = [high - y for high, y in zip(series.high, series.y, strict=True)]
        below = [y - low for low, y in zip(series.low, series.y, strict=True)]
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": above,
            "arrayminus": below,
            "color": colour,
            "thickness": 1.2,
            "width": 3,
        }
    return trace


def _mode(series: Series) -> str:
    """Return how points are drawn: a line of one point would not be seen."""
    if not series.line or len(series.x) == 1:
        return "markers"
    return "lines+markers" if series.low else "lines"


def _diagonals(chart: Chart) -> Iterator[Trace]:
    values = [value for series in chart.series for value in (*series.x, *series.y)]
    if not chart.diagonal or not values:
        return
    ends = [min(values), max(values)]
    factors = [1.0, 1 + chart.tolerance, 1 / (1 + chart.tolerance)] if chart.tolerance else [1.0]
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


def _level(rule: Rule, chart: Chart) -> Trace:
    values = [value for series in chart.series for value in series.x] or [0.0, 1.0]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": shown(rule.label),
        "x": [min(values), max(values)],
        "y": [rule.y, rule.y],
        "line": {"color": _LIMIT, "width": 1.5, "dash": "dash"},
    }


def _histogram(histogram: Histogram) -> dict[str, Any]:
    edges = histogram.edges
    widths = [high - low for low, high in pairwise(edges)]
    bars: Trace = {
        "type": "bar",
        "x": [low + width / 2 for low, width in zip(edges, widths, strict=False)],
        "y": list(histogram.counts),
        "width": widths,
        "marker": {"color": BRIGHT[0], "line": {"width": 0.5, "color": GREY}},
        "showlegend": False,
    }
    most = max(histogram.counts, default=1)
    marks = [
        {
            "type": "scatter",
            "mode": "lines+text",
            "x": [mark.y, mark.y],
            "y": [0, most],
            "text": ["", shown(mark.label)],
            "textposition": "top center",
            "line": {"color": _LIMIT, "width": 1.5, "dash": "dash"},
            "hoverinfo": "x",
            "showlegend": False,
        }
        for mark in histogram.marks
    ]
    return {
        "data": [bars, *marks],
        "layout": _layout(
            xaxis=_axis(histogram.x_label), yaxis=_axis(histogram.y_label), showlegend=False
        ),
    }


def _heat_map(heat: HeatMap) -> dict[str, Any]:
    ranks = list(map(str, heat.ranks))
    trace = {
        "type": "heatmap",
        "x": ranks,
        "y": ranks,
        "z": [list(row) for row in heat.values],
        "colorscale": "Viridis",
        "colorbar": {"title": {"text": shown(heat.unit)}},
        "hovertemplate": f"%{{y}} - %{{x}}: %{{z:.4g}} {shown(heat.unit)}<extra></extra>",
    }
    named: dict[str, Any] = {"type": "category", "showgrid": False}
    return {
        "data": [trace],
        "layout": _layout(
            _LEAST + 8 * len(ranks),
            xaxis=_axis(heat.x_label, **named),
            yaxis=_axis(heat.y_label, autorange="reversed", **named),
        ),
    }


def _stacks(stacks: Stacks) -> dict[str, Any]:
    bars = [shown(bar) for bar in stacks.bars]
    data: list[Trace] = [
        {
            "type": "bar",
            "orientation": "h",
            "name": shown(part.label),
            "y": bars,
            "x": list(part.values),
            "marker": {"color": LIGHT[place % len(LIGHT)]},
        }
        for place, part in enumerate(stacks.parts)
    ]
    layout = _layout(
        _BASE + 90 + _ROW * len(bars),
        barmode="relative",
        xaxis=_axis(stacks.y_label),
        yaxis={"automargin": True, "autorange": "reversed", "type": "category"},
        legend={**_ABOVE, "traceorder": "normal"},
    )
    if stacks.limit is not None and bars:
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": shown(stacks.limit.label),
                "x": [stacks.limit.y] * len(bars),
                "y": bars,
                "line": {"color": _LIMIT, "width": 1.5, "dash": "dash"},
                "marker": {"color": _LIMIT, "size": 16, "symbol": "line-ns-open"},
            }
        )
    return {"data": data, "layout": layout}


def _timeline(timeline: Timeline) -> dict[str, Any]:
    one_by_one = len(timeline.row) <= _MOST_BARS
    used = sorted(set(timeline.kind))
    colours = {kind: LIGHT[place % len(LIGHT)] for place, kind in enumerate(used)}
    data = [
        _bars(timeline, kind, colour) if one_by_one else _sample(timeline.kinds[kind], colour)
        for kind, colour in colours.items()
    ]
    if not one_by_one:
        data.insert(0, _raster(timeline, colours))
    rows = len(timeline.rows)
    ticks = list(range(0, rows, max(1, rows // _MOST_TICKS)))
    return {
        "data": data,
        "layout": _layout(
            _BASE + (_ROW if rows < _MANY else _ROW / 2) * rows,
            barmode="overlay",
            hovermode="closest",
            dragmode="zoom",
            xaxis=_axis(timeline.x_label, range=[0, max(timeline.stop)]),
            yaxis={
                "automargin": True,
                "range": [rows - 0.5, -0.5],
                "tickvals": ticks,
                "ticktext": [shown(timeline.rows[tick]) for tick in ticks],
            },
            legend=_ABOVE,
        ),
    }


def _bars(timeline: Timeline, kind: int, colour: str) -> Trace:
    """Return the bars of a kind, each of which says what it is."""
    places = [i for i, each in enumerate(timeline.kind) if each == kind]
    edge = _EDGE if len(timeline.row) <= _MOST_EDGES else 0.0
    return {
        "type": "bar",
        "orientation": "h",
        "name": shown(timeline.kinds[kind]),
        "y": [timeline.row[i] for i in places],
        "base": [timeline.start[i] for i in places],
        "x": [timeline.stop[i] - timeline.start[i] for i in places],
        "text": [shown(timeline.texts[i]) for i in places],
        "textposition": "none",
        "hovertemplate": "%{text}<br>%{base:.4s} s + %{x:.4s} s<extra></extra>",
        "width": _THICK,
        "marker": {"color": colour, "line": {"width": edge, "color": GREY}},
    }


def _raster(timeline: Timeline, colours: Mapping[int, str]) -> Trace:
    """Return all bars as a picture, which the page paints anew for what is zoomed into.

    Tens of thousands of bars take a browser many seconds, a picture of them a fraction of one. The
    page makes it of `bars`, whose kinds are places in the colour scale.
    """
    places = {kind: place for place, kind in enumerate(colours)}
    count = len(colours)
    scale = [
        [(place + end) / count, colour]
        for place, colour in enumerate(colours.values())
        for end in (0, 1)
    ]
    return {
        "type": "heatmap",
        "bars": {
            "rows": len(timeline.rows),
            "row": list(timeline.row),
            "kind": [places[kind] for kind in timeline.kind],
            "start": list(timeline.start),
            "stop": list(timeline.stop),
        },
        "colorscale": scale,
        "zmin": -0.5,
        "zmax": count - 0.5,
        "showscale": False,
        "hoverinfo": "skip",
        "ygap": 2,
    }


def _sample(name: str, colour: str) -> Trace:
    """Return an entry of the legend."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": shown(name),
        "x": [None],
        "y": [None],
        "marker": {"color": colour, "symbol": "square", "size": 12},
    }


def _layout_map(found: LayoutMap) -> dict[str, Any]:
    values = [[cell.value for cell in row] for row in found.cells]
    trace: Trace = {
        "type": "heatmap",
        "x": list(range(len(found.columns))),
        "y": list(range(len(found.rows))),
        "z": values,
        "customdata": [
            [
                shown(f"tp {tp}, pp {pp}: {cell.text}")
                for tp, cell in zip(found.columns, row, strict=True)
            ]
            for pp, row in zip(found.rows, found.cells, strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
        "hoverongaps": True,
        "colorscale": "Viridis",
        "reversescale": True,
        "colorbar": {"title": {"text": shown(found.unit)}},
        "xgap": 2,
        "ygap": 2,
    }
    known = [value for row in values for value in row if value is not None]
    return {
        "data": [trace],
        "layout": _layout(
            _BASE + 46 * len(found.rows),
            xaxis=_axis(found.x_label, **_named_ticks(found.columns)),
            yaxis=_axis(found.y_label, **_named_ticks(found.rows)),
            annotations=list(_cell_texts(found, known)),
        ),
    }


def _named_ticks(names: Sequence[str]) -> dict[str, Any]:
    """Return a tick with a name at each whole number; names that look like numbers stay names."""
    return {
        "tickvals": list(range(len(names))),
        "ticktext": list(map(shown, names)),
        "showgrid": False,
        "zeroline": False,
    }


def _cell_texts(found: LayoutMap, known: Sequence[float]) -> Iterator[dict[str, Any]]:
    middle = (min(known) + max(known)) / 2 if known else 0.0
    for row, cells in enumerate(found.cells):
        for column, cell in enumerate(cells):
            text = cell.sign if cell.value is None else f"{cell.value:.4g}"
            note: dict[str, Any] = {"x": column, "y": row, "text": shown(text), "showarrow": False}
            if cell.value is not None:
                note["font"] = {"color": "#ffffff" if cell.value > middle else _DARK}
            yield note


def _tornado(tornado: Tornado) -> dict[str, Any]:
    labels = [shown(swing.label) for swing in tornado.swings]
    lows = [min(swing.low, swing.high) for swing in tornado.swings]
    highs = [max(swing.low, swing.high) for swing in tornado.swings]
    reach = [
        (min(low, tornado.centre), max(high, tornado.centre))
        for low, high in zip(lows, highs, strict=True)
    ]
    trace = {
        "type": "bar",
        "orientation": "h",
        "y": labels,
        "base": [low for low, _ in reach],
        "x": [high - low for low, high in reach],
        "customdata": [
            [low, high, shown(swing.text)]
            for low, high, swing in zip(lows, highs, tornado.swings, strict=True)
        ],
        "hovertemplate": "%{y}: %{customdata[0]:.4g} to %{customdata[1]:.4g}"
        "<br>%{customdata[2]}<extra></extra>",
        "marker": {"color": [BRIGHT[0] if high >= tornado.centre else BRIGHT[1] for high in highs]},
    }
    line = {
        "type": "line",
        "x0": tornado.centre,
        "x1": tornado.centre,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": GREY, "width": 1.5},
    }
    return {
        "data": [trace],
        "layout": _layout(
            _BASE + _ROW * len(labels),
            showlegend=False,
            xaxis=_axis(tornado.x_label),
            yaxis={"automargin": True, "autorange": "reversed", "type": "category"},
            shapes=[line],
        ),
    }


def _diagram(diagram: Diagram) -> dict[str, Any]:
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            **_ends(diagram.boxes[cable.one], diagram.boxes[cable.other]),
            "text": shown(cable.text),
            "hoverinfo": "text",
            "line": {"color": utilised(cable.used), "width": 2.5},
            "showlegend": False,
        }
        for cable in diagram.cables
    ]
    notes = [
        {
            "x": box.x,
            "y": box.y,
            "text": shown(box.label),
            "showarrow": False,
            "bgcolor": BOXES.get(box.kind, GREY),
            "bordercolor": GREY,
            "borderpad": 3,
            "font": {"color": _DARK, "size": 11},
        }
        for box in diagram.boxes
    ]
    hidden = {"visible": False}
    rows = 1 + max((box.y for box in diagram.boxes), default=0.0)
    return {
        "data": data,
        "layout": _layout(
            _BASE + 110 * rows,
            showlegend=False,
            hovermode="closest",
            xaxis={**hidden, "range": [-0.06, 1.06]},
            yaxis={**hidden, "range": [-0.6, rows - 0.4]},
            annotations=notes,
        ),
    }


def _ends(one: Box, other: Box) -> dict[str, list[float]]:
    """Return the ends of a line and its middle, where a pointer finds what it is."""
    return {
        "x": [one.x, (one.x + other.x) / 2, other.x],
        "y": [one.y, (one.y + other.y) / 2, other.y],
    }
