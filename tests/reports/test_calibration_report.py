"""What a calibration report shows: figures as numbers, tables that fit, pages that are safe."""

from __future__ import annotations

import io
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from calibrate.records import Clocks, Record, Status
from calibrate.summary import Summary, summarise
from reports.calibration_record import calibration_file
from reports.calibration_sections import SECTIONS, check_sections, report_sections
from reports.calibration_view import print_sections
from reports.charts import Chart, Figure, HeatMap, Histogram, Series
from reports.page.document import Document, document_of
from reports.page.html import html_of
from reports.page.markdown import markdown_of
from reports.words import Language
from simulator.hardware.profile import load_profile
from tests.calibrate.measured import HEADER, all_reduce, copy, gemm, pair, record, rejected, step

EVIL = "<script>alert(1)</script> $x^$ |cell|\x1b[31m"
H100 = load_profile("dgx-h100")


def summary(*records: Record, **others: Any) -> Summary:
    return summarise([HEADER], records, H100, **others)


@cache
def everything() -> Summary:
    clocks = Clocks(sm_clock=1.7e9, power=650.0, temperature=70.0, throttle=("sw_power_cap",))
    return summary(
        record(gemm(), 3e-4, clocks=clocks),
        record(all_reduce(2**20), 3e-5),
        record(all_reduce(2**26), 4e-4),
        record(copy(2**26), 4e-5),
        record(step(), 0.06, values={"peak_allocated": 9e9}),
        record(pair(0, 1, 2**26), 1e-3),
        record(pair(1, 0, 2**26), 2e-3),
        rejected(all_reduce(7), EVIL),
        record(step(EVIL), 0.1),
        base=load_profile("dgx-a100-80gb"),
        notes=(EVIL,),
    )


def document(found: Summary, language: Language = Language.ENGLISH) -> Document:
    """Return the page of a calibration, as a document."""
    return document_of((calibration_file(found, Path("measured")),), language)


def drawn(*records: Record) -> dict[str, Figure]:
    """Return the figures of some points by their names."""
    (part,) = document(summary(*records)).parts
    return {figure.name: figure for figure in part.figures}


def test_bus_bandwidth_is_drawn_over_size() -> None:
    # 2 x 7/8 of 1 GB in 10 ms, and of 0.1 GB in 2 ms.
    chart = drawn(record(all_reduce(1e9), 10e-3), record(all_reduce(1e8), 2e-3))["curve-0"]
    assert isinstance(chart, Chart)
    measured, forecast = chart.series
    assert measured == Series(
        label="8 ranks, measured", group="8 ranks", line=False, x=(1e8, 1e9), y=(87.5, 175.0)
    )
    assert (forecast.x, forecast.line) == ((1e8, 1e9), True)


def test_pairs_of_ranks_are_a_map_and_no_chart() -> None:
    found = drawn(record(pair(0, 2, 1e9), 0.1), record(pair(2, 0, 1e9), 0.2))
    heat_map = found["pairs"]
    assert isinstance(heat_map, HeatMap)
    assert (heat_map.ranks, heat_map.values) == ((0, 2), ((None, 10.0), (5.0, None)))
    assert not any(name.startswith("curve") for name in found)


def test_a_pair_is_as_fast_as_its_largest_message() -> None:
    found = summary(record(pair(0, 1, 1e9), 0.1), record(pair(0, 1, 1e3), 0.1))
    assert [each.bandwidth for each in found.pairs] == [1e10]


def test_errors_beyond_the_edges_are_in_the_last_bars() -> None:
    # Much too slow a measurement, much too fast a one: -100 % and far above +100 %.
    figure = drawn(record(gemm(), 10.0), record(gemm(8), 1e-9))["errors"]
    assert isinstance(figure, Histogram)
    assert (figure.counts[0], figure.counts[-1], sum(figure.counts)) == (1, 1, 2)


def test_nothing_is_drawn_of_nothing() -> None:
    assert drawn() == {}


def test_measured_rates_of_products_are_in_tflops() -> None:
    # 2 x 4096^3 FLOP in 1 ms are 137.4 TFLOP/s.
    chart = drawn(record(gemm(), 1e-3))["curve-0"]
    assert isinstance(chart, Chart)
    assert chart.y_label == "TFLOP/s"
    assert chart.series[0].y == pytest.approx((137.4,), rel=1e-3)


def test_the_page_holds_every_section_of_the_terminal() -> None:
    (part,) = document(everything()).parts
    assert [(each.title, each.text, each.rows) for each in part.sections] == [
        (each.title, each.text, each.rows) for each in report_sections(everything())
    ]


def test_the_page_is_titled_by_its_profile() -> None:
    found = document(everything())
    (part,) = found.parts
    assert (found.title, part.title, part.source) == (
        "Calibration of dgx-h100",
        "Calibration: dgx-h100",
        "measured",
    )


def test_a_chinese_page_has_chinese_titles_of_all_sections() -> None:
    found = document(everything(), Language.CHINESE)
    (part,) = found.parts
    assert (found.title, part.title) == ("dgx-h100 的校准", "校准\uff1adgx-h100")
    assert "dgx-h100 的常数" in [each.title for each in part.sections]
    english = {each.title for each in report_sections(everything())}
    assert english & {each.title for each in part.sections} == set()


def show(found: Summary, width: int, sections: Any = None) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, markup=False, highlight=False)
    print_sections(console, sections or report_sections(found))
    return out.getvalue()


@pytest.mark.parametrize("width", [50, 80, 160])
def test_a_report_fits_the_terminal(width: int) -> None:
    assert max(map(len, show(everything(), width).splitlines())) <= width


def test_a_piped_report_has_no_control_characters() -> None:
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", show(everything(), 120))


def test_a_check_shows_errors_noise_and_what_was_left_out() -> None:
    found = everything()
    text = show(found, 160, check_sections(found.check))
    words = ("median", "noise", "does not list the points", "neither a shipped")
    assert [word in text for word in words] == [True] * 4


def test_a_report_of_an_empty_folder_says_so() -> None:
    text = show(summary(), 80)
    assert "The folder holds no measured point." in text
    assert "No measured point could be compared" in text


def test_a_folder_of_rejected_points_lists_them() -> None:
    found = summary(rejected(all_reduce(8), "faster than light"))
    text = show(found, 120)
    assert ("faster than light" in text, "No measured point" in text) == (True, True)
    assert "faster than light" in markdown_of(document(found))
    assert "faster than light" in html_of(document(found))


def test_throttling_is_told() -> None:
    assert "throttled: sw_power_cap" in show(everything(), 80)


def test_a_slow_link_is_named_with_its_factor() -> None:
    # Rank 3 takes twice as long with every partner.
    slow = [
        record(pair(first, second, 2**24), 2e-3 if second == 3 else 1e-3)
        for first in range(4)
        for second in range(first + 1, 4)
    ]
    text = show(summary(*slow), 80)
    assert re.search(r"rank 3, link +2\.00", text)


def test_healthy_ranks_are_not_named() -> None:
    healthy = [record(pair(0, second, 2**24), 1e-3) for second in range(1, 4)]
    assert "Slow ranks" not in show(summary(*healthy), 80)


def test_the_shipped_profile_stands_beside_the_fitted_one() -> None:
    assert "with dgx-a100-80gb" in show(everything(), 200)


@pytest.mark.parametrize("name", list(SECTIONS))
def test_every_section_of_a_full_report_has_as_many_cells_a_line(name: str) -> None:
    section = SECTIONS[name](everything())
    if section is not None:
        assert {len(row) for row in section.rows} <= {len(section.columns)}


def test_a_page_shows_foreign_text_and_runs_none_of_it() -> None:
    page = html_of(document(everything()))
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; $x^$ |cell|" in page


def test_markdown_shows_foreign_text_as_text() -> None:
    text = markdown_of(document(everything()))
    assert "<script>" not in text
    assert r"\<script\>alert\(1\)" in text.replace("(", r"\(").replace(")", r"\)")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(re.search(r"(?<!\\)\|$", row) for row in rows)


def test_statuses_are_counted_by_family() -> None:
    found = summary(record(gemm()), record(gemm(8), None, status=Status.TIMEOUT))
    assert found.counts == {"gemm bf16": {Status.OK: 1, Status.TIMEOUT: 1}}
