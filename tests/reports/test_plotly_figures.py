"""Figures as dictionaries for plotly."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from reports.charts import Diagram, Figure, HeatMap, Histogram, LayoutMap, Timeline
from reports.palette import LIGHT
from reports.plotly_figures import plotly_figure
from reports.plotly_figures.layout import shown
from tests.reports import small_figures as small
from tests.reports.marks import marks_of

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
            return sum("bgcolor" in note for note in drawn["layout"]["annotations"])
        case Timeline():
            return len(drawn["bars"]["start"])
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
    drawing = plotly_figure(_hostile(figure))
    # The page writes these as text, and plotly never sees them.
    drawing["bars"] = {**drawing.get("bars", {}), "texts": [], "rows": [], "idle": ""}
    drawn = json.dumps(drawing, ensure_ascii=False)
    drawn = drawn.replace("<extra></extra>", "").replace("<br>", "")
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


def test_a_limit_passes_every_bar_at_the_value_of_that_bar() -> None:
    limit = plotly_figure(small.STACKS)["data"][-1]
    assert (limit["x"], limit["y"]) == ([80.0, 80.0, 64.0, 64.0], [-0.5, 0.5, 0.5, 1.5])


def test_bars_that_are_called_the_same_stay_two() -> None:
    drawn = plotly_figure(replace(small.STACKS, bars=("1", "1")))
    assert drawn["data"][0]["y"] == [0, 1]
    assert drawn["layout"]["yaxis"]["ticktext"] == ["1", "1"]


def test_a_part_has_its_own_colour_whatever_stands_before_it() -> None:
    part = replace(small.STACKS.parts[1], tone=7)
    alone = plotly_figure(replace(small.STACKS, parts=(part,)))
    assert alone["data"][0]["marker"]["color"] == LIGHT[7]


def test_equal_values_are_marked_and_ten_percent_beside_them() -> None:
    data = plotly_figure(replace(small.CHART, diagonal=True, tolerance=0.1))["data"]
    lines = [trace["y"] for trace in data if trace.get("hoverinfo") == "skip"]
    assert lines == [[1.0, 50.0], pytest.approx([1.1, 55.0]), pytest.approx([1 / 1.1, 50 / 1.1])]


def test_a_line_of_one_point_is_a_mark() -> None:
    series = replace(small.POINTS, line=True, x=(1.0,), y=(2.0,), low=(), high=(), texts=())
    chart = replace(small.CHART, series=(series,))
    assert plotly_figure(chart)["data"][0]["mode"] == "markers"


def test_the_bars_of_a_timeline_stand_row_by_row_in_the_order_of_time() -> None:
    bars = plotly_figure(small.TIMELINE)["bars"]
    times = [
        (start * bars["unit"], stop * bars["unit"])
        for start, stop in zip(bars["start"], bars["stop"], strict=True)
    ]
    assert bars["first"] == [0, 2, 4]
    assert times == [pytest.approx(each) for each in ((0, 1), (4, 6), (1, 2), (2, 4))]
    assert [bars["texts"][place] for place in bars["text"]] == [
        *("forward 0", "backward 0"),
        *("forward 0", "backward 0"),
    ]
    assert bars["kind"] == [0, 1, 0, 1]


def test_the_times_of_a_timeline_are_exact_to_a_four_billionth_of_its_end() -> None:
    stop = (1e-6, 2.0, 4.0, 20.0)
    bars = plotly_figure(replace(small.TIMELINE, stop=stop))["bars"]
    assert max(bars["stop"]) == 2**32 - 1
    assert min(bars["stop"]) * bars["unit"] == pytest.approx(1e-6, abs=20 / 2**32)
