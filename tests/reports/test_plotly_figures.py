"""Figures as dictionaries for plotly."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reports.charts import Diagram, Figure, HeatMap, Histogram, LayoutMap, Timeline
from reports.palette import LIGHT
from reports.plotly_figures import marks_of, plotly_figure, shown
from tests.reports import small_figures as small

_HOSTILE = '<b>x</b><a href="javascript:alert(1)">$\\pi$</a>&lt;i&gt;<br>'
_kind = pytest.mark.parametrize("figure", small.SMALL, ids=lambda each: type(each).__name__)


@pytest.mark.parametrize(
    ("figure", "marks"), small.MARKS, ids=lambda value: getattr(value, "title", None)
)
def test_every_mark_is_drawn(figure: Figure, marks: int) -> None:
    assert (marks_of(figure), _drawn(figure)) == (marks, marks)


def _drawn(figure: Figure) -> int:
    """Count the marks in what plotly gets, apart from lines, limits and legends."""
    drawn = plotly_figure(figure)
    match figure:
        case Diagram():
            return len(drawn["layout"]["annotations"])
        case HeatMap():
            return sum(value is not None for row in drawn["data"][0]["z"] for value in row)
        case LayoutMap():
            return len(drawn["layout"]["annotations"])
        case Histogram():
            return len(drawn["data"][0]["y"])
        case _:
            marks = ("bar", "markers")
            traces = drawn["data"]
            return sum(len(each["x"]) for each in traces if each.get("mode", each["type"]) in marks)


@_kind
def test_text_of_the_input_is_never_markup(figure: Figure) -> None:
    drawn = json.dumps(plotly_figure(_hostile(figure)), ensure_ascii=False)
    drawn = drawn.replace("<extra></extra>", "").replace("%{text}<br>", "")
    drawn = drawn.replace("<br>%{customdata[2]}", "")
    assert "&lt;b&gt;x&lt;/b&gt;" in drawn
    assert [sign for sign in ("<", "$", "&lt;i&gt;") if sign in drawn] == []


def _hostile(value: Any) -> Any:
    """Return a figure in which every text has markup in it."""
    if isinstance(value, str):
        return _HOSTILE
    if isinstance(value, tuple):
        return tuple(map(_hostile, value))
    if not hasattr(value, "__dataclass_fields__"):
        return value
    kept = ("kind",) if hasattr(value, "label") else ()
    names = [name for name in value.__dataclass_fields__ if name not in kept]
    return replace(value, **{name: _hostile(getattr(value, name)) for name in names})


def test_entities_stay_what_was_written() -> None:
    assert shown("&lt;b&gt; $1") == "&amp;lt;b&amp;gt; &#36;1"


@_kind
def test_colours_of_the_theme_are_left_to_the_page(figure: Figure) -> None:
    layout = plotly_figure(figure)["layout"]
    assert {"paper_bgcolor", "plot_bgcolor", "font", "template"} & set(layout) == set()


def test_an_interval_reaches_from_its_low_to_its_high_end() -> None:
    error = plotly_figure(small.CHART)["data"][0]["error_y"]
    assert (error["arrayminus"], error["array"]) == ([1.0, 2.0, 10.0], [2.0, 2.0, 10.0])


def test_a_limit_stands_at_every_bar() -> None:
    limit = plotly_figure(small.STACKS)["data"][-1]
    assert (limit["x"], limit["y"]) == ([80.0, 80.0], ["stage 0", "stage 1"])


def test_equal_values_are_marked_and_ten_percent_beside_them() -> None:
    data = plotly_figure(replace(small.CHART, diagonal=True, tolerance=0.1))["data"]
    lines = [trace["y"] for trace in data if trace.get("hoverinfo") == "skip"]
    assert lines == [[1.0, 50.0], pytest.approx([1.1, 55.0]), pytest.approx([1 / 1.1, 50 / 1.1])]


def test_a_line_of_one_point_is_a_mark() -> None:
    series = replace(small.POINTS, line=True, x=(1.0,), y=(2.0,), low=(), high=(), texts=())
    chart = replace(small.CHART, series=(series,))
    assert plotly_figure(chart)["data"][0]["mode"] == "markers"


def test_a_large_timeline_is_a_picture_of_all_its_bars() -> None:
    count = 5000
    large: Timeline = replace(
        small.TIMELINE,
        row=(0, 1) * (count // 2),
        kind=(0, 1) * (count // 2),
        start=tuple(map(float, range(count))),
        stop=tuple(float(place + 1) for place in range(count)),
        texts=("",) * count,
    )
    picture, *legend = plotly_figure(large)["data"]
    assert len(picture["bars"]["start"]) == count
    assert [colour for _, colour in picture["colorscale"]] == [
        *(LIGHT[0],) * 2,
        *(LIGHT[1],) * 2,
    ]
    assert [entry["name"] for entry in legend] == ["forward", "backward"]
