"""Errors of forecasts of modern runs stay where they are, or shrink.

A target that is missed has the error that was measured in `now`, which may not grow. The causes are
listed in docs/accuracy.md. One test a table, so that each is forecast once.
"""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from calibrate.validation import RowResult, Status, validate_rows
from calibrate.validation.records import Quantity
from calibrate.validation.targets import TARGETS, Reached, Target, reached, rows_that_say_enough
from tests.data import data_folder, needs_data

_ROOM = 0.01
"""A point, by which an error may grow before a change has to be explained."""
_FORECAST = {
    "nvidia_bridge": 0.95,
    "nvidia_dgxc": 0.95,
    "mlperf": 0.95,
    "simumax_b200": 1.0,
    "torchtitan": 1.0,
    "misc": 0.9,
}
"""Table -> least share of the rows that say enough which are forecast."""


@needs_data
@pytest.mark.parametrize("file", _FORECAST)
def test_rows_that_say_enough_are_forecast_as_well_as_before(file: str) -> None:
    path = data_folder() / "steps" / f"{file}.csv"
    found = rows_that_say_enough(path, validate_rows(path).rows)
    errors = {name: reached(t, found).error for name, t in TARGETS.items() if t.file == file}
    worse = {
        name: error
        for name, error in errors.items()
        if error > max(TARGETS[name].limit, TARGETS[name].now + _ROOM)
    }
    rows = [row for _, row in found if not row.reason.startswith("used to fit")]
    forecast = sum(row.predicted is not None for row in rows) / len(rows)
    assert (worse, forecast >= _FORECAST[file]) == ({}, True), (errors, forecast)


def result(measured: float, predicted: float) -> RowResult:
    return RowResult(
        id="a",
        status=Status.PREDICTED,
        quantity=Quantity.STEP_TIME,
        measured=measured,
        predicted=predicted,
    )


def test_rows_measured_more_than_twice_slower_are_told_apart() -> None:
    target = Target(file="a", of=lambda cells: cells["model"] == "m", limit=0.1, now=0.1)
    rows = [
        ({"model": "m"}, result(1.0, 1.1)),
        ({"model": "m"}, result(2.0, 1.0)),
        ({"model": "m"}, result(4.0, 1.0)),
        ({"model": "other"}, result(1.0, 9.0)),
    ]
    expected = Reached(rows=3, error=0.5, without_slow=0.3, slow=1, bias=-0.5)
    assert asdict(reached(target, rows)) == pytest.approx(asdict(expected))


def test_rows_without_a_forecast_count_for_nothing() -> None:
    target = Target(file="a", of=lambda _: True, limit=0.1, now=0.1)
    found = reached(target, [({}, replace(result(1.0, 2.0), predicted=None))])
    assert found == Reached(rows=0, error=0.0, without_slow=0.0, slow=0, bias=0.0)
