"""Figures drawn by matplotlib."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from reports.charts import Figure
from reports.drawing import png_of, svg_of
from reports.drawing.files import save_figure
from reports.drawing.fonts import chinese_font
from simulator.errors import InputError
from tests.reports import small_figures as small

_SVG = "{http://www.w3.org/2000/svg}"
_kind = pytest.mark.parametrize("figure", small.SMALL, ids=lambda each: type(each).__name__)


@_kind
def test_the_same_figure_is_the_same_svg_with_its_title_as_text(figure: Figure) -> None:
    drawn = svg_of(replace(figure, title="<b>$x_1$</b>"), "one")
    texts = [each.text for each in ET.fromstring(drawn).iter(f"{_SVG}text")]
    assert drawn == svg_of(replace(figure, title="<b>$x_1$</b>"), "one")
    assert "<b>$x_1$</b>" in texts


@pytest.mark.parametrize(
    ("figure", "colour", "count"),
    [
        (small.HISTOGRAM, "#4477aa", 2),
        (small.STACKS, "#77aadd", 2),
        (small.TORNADO, "#4477aa", 1),
        (small.DIAGRAM, "#77aadd", 2),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "title") else None,
)
def test_each_bar_and_box_is_one_shape(figure: Figure, colour: str, count: int) -> None:
    paths = ET.fromstring(svg_of(figure, "one")).iter(f"{_SVG}path")
    shapes = [path for path in paths if f"fill: {colour}" in path.get("style", "")]
    legend = 1 if figure is small.STACKS else 0
    assert len(shapes) == count + legend


def test_a_saved_figure_is_what_its_name_says(tmp_path: Path) -> None:
    svg, png = tmp_path / "chart.svg", tmp_path / "chart.png"
    save_figure(small.CHART, svg)
    save_figure(small.CHART, png)
    assert svg.read_text().startswith("<svg")
    assert png.read_bytes() == png_of(small.CHART)
    assert png.read_bytes().startswith(b"\x89PNG")


def test_chinese_is_written_with_a_font_that_has_it() -> None:
    assert chinese_font(["DejaVu Sans", "WenQuanYi Zen Hei"]) == "WenQuanYi Zen Hei"


def test_where_no_font_has_chinese_it_is_said_how_to_get_one() -> None:
    with pytest.raises(InputError, match="fonts-wqy-zenhei"):
        chinese_font(["DejaVu Sans"])
