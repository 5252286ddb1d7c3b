"""Figures of forecasts side by side."""

from __future__ import annotations

from typing import Any

from planner.sweep.row import Outcome
from reports.report_figures import rows
from reports.result_files.sweep import ComparedRow, CompareFile, SweepFile, SweepRow
from reports.words import english
from tests.reports.small_figures import partly

_FORECAST: dict[str, Any] = {
    "outcome": Outcome.OK,
    "step_time_s": 10.0,
    "low_s": 8.0,
    "high_s": 20.0,
    "mfu": 0.4,
}


def _swept(nodes: int, batch: int, **more: Any) -> SweepRow:
    values = {"cluster.nodes": nodes, "job.global_batch_size": batch}
    return SweepRow(values=values, accelerators=8 * nodes, **{**_FORECAST, **more})


def test_a_sweep_has_a_line_for_each_value_of_the_second_key() -> None:
    found = partly(
        SweepFile,
        keys=("cluster.nodes", "job.global_batch_size"),
        rows=(_swept(2, 64), _swept(1, 64, step_time_s=18.0), _swept(1, 128), _swept(2, 128)),
    )
    step, mfu = list[Any](rows.of_sweep(found, english))
    lines = {each.label: (each.line, each.x, each.y) for each in step.series}
    assert lines == {
        "global_batch_size 64": (True, (8.0, 16.0), (18.0, 10.0)),
        "global_batch_size 128": (True, (8.0, 16.0), (10.0, 10.0)),
    }
    # A step from 0.8 to 2 times as long: 1 / 2 to 1 / 0.8 times the MFU.
    (first, _) = mfu.series
    assert (first.y[1], first.low[1], first.high[1]) == (40.0, 20.0, 50.0)


def test_what_cannot_run_is_not_drawn() -> None:
    failed = _swept(1, 64, outcome=Outcome.NO_FIT, step_time_s=None, mfu=None)
    found = partly(SweepFile, keys=("cluster.nodes",), rows=(failed,))
    assert list(rows.of_sweep(found, english)) == []


def test_scenarios_of_one_size_and_one_title_stand_apart() -> None:
    row = ComparedRow(scenario="a.toml", title="Llama", accelerators=64, **_FORECAST)
    found = partly(CompareFile, scenarios=(row, row))
    step: Any = next(rows.of_comparison(found, english))
    assert [each.x for each in step.series] == [(0.0,), (1.0,)]
    assert [each.label for each in step.series] == ["1: Llama", "2: Llama"]
    assert step.x_names == ("1", "2")
