"""Where axes are marked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.chart_ticks import x_ticks
from tests.reports.small_figures import CHART, POINTS


def _over(*x: float) -> tuple[tuple[float, str], ...]:
    series = replace(POINTS, x=x, y=x, low=(), high=(), texts=())
    return x_ticks(replace(CHART, series=(series,)))


def test_a_few_sizes_are_marked_themselves() -> None:
    assert _over(512.0, 1024.0) == ((512.0, "512"), (1024.0, "1,024"))


@pytest.mark.parametrize(
    "places",
    [
        (1000.0, 1001.0, 8000.0),
        (3e-5, 4e-5),
        (2.0**20, 2.0**34),
        tuple(2.0**power for power in range(9)),
    ],
    ids=["too close", "no whole numbers", "too large", "too many"],
)
def test_else_a_logarithmic_axis_marks_itself(places: tuple[float, ...]) -> None:
    assert _over(*places) == ()


def test_names_stand_at_their_places() -> None:
    assert x_ticks(replace(CHART, x_names=("a", "b"))) == ((0.0, "a"), (1.0, "b"))


def test_of_many_names_one_of_several_is_written() -> None:
    ticks = x_ticks(replace(CHART, x_names=tuple(map(str, range(500)))))
    assert (len(ticks), ticks[1]) == (25, (20.0, "20"))


def test_a_few_sizes_are_marked_on_a_linear_axis_too() -> None:
    series = replace(POINTS, x=(8.0, 16.0), y=(1.0, 2.0), low=(), high=(), texts=())
    chart = replace(CHART, log_x=False, series=(series,))
    assert x_ticks(chart) == ((8.0, "8"), (16.0, "16"))
