"""Figures of sweeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.sweep.row import Outcome
from planner.sweep.sweep_file import Quantity
from reports.charts import Series
from reports.report_figures import comparison
from reports.report_figures.sweep import of_sweep, sweep_chart
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


def _swept(values: dict[str, Any], accelerators: int, **more: Any) -> SweepRow:
    return SweepRow(values=values, accelerators=accelerators, **{**_FORECAST, **more})


def _nodes(nodes: int, batch: int, **more: Any) -> SweepRow:
    return _swept({"cluster.nodes": nodes, "job.global_batch_size": batch}, 8 * nodes, **more)


def _sweep(*rows: SweepRow) -> SweepFile:
    return partly(SweepFile, title="Swept", keys=tuple(rows[0].values), rows=rows)


def test_a_sweep_has_a_line_for_each_value_of_the_second_key() -> None:
    found = _sweep(_nodes(2, 64), _nodes(1, 64, step_time_s=18.0), _nodes(1, 128), _nodes(2, 128))
    step, mfu = list[Any](of_sweep(found, english))
    lines = {each.label: (each.line, each.x, each.y) for each in step.series}
    assert step.x_label == "Accelerators"
    assert lines == {
        "global_batch_size 64": (True, (8.0, 16.0), (18.0, 10.0)),
        "global_batch_size 128": (True, (8.0, 16.0), (10.0, 10.0)),
    }
    # A step from 0.8 to 2 times as long: 1 / 2 to 1 / 0.8 times the MFU.
    (first, _) = mfu.series
    assert (first.y[1], first.low[1], first.high[1]) == (40.0, 20.0, 50.0)


def test_with_another_first_key_each_size_of_the_cluster_is_a_line() -> None:
    found = _sweep(
        *(
            _swept({"job.global_batch_size": batch, "cluster.nodes": nodes}, 8 * nodes)
            for batch in (64, 128, 512)
            for nodes in (1, 2)
        )
    )
    chart = sweep_chart(found, Quantity.STEP_TIME, english)
    assert (chart.x_label, chart.log_x) == ("job.global_batch_size", True)
    assert [(each.label, each.x) for each in chart.series] == [
        ("nodes 1", (64.0, 128.0, 512.0)),
        ("nodes 2", (64.0, 128.0, 512.0)),
    ]


def test_a_key_that_moves_with_the_first_makes_no_line_of_its_own() -> None:
    found = _sweep(_nodes(1, 64), _nodes(2, 128), _nodes(4, 256))
    (line,) = sweep_chart(found, Quantity.MFU, english).series
    assert (line.label, line.x) == ("", (8.0, 16.0, 32.0))


def test_names_are_places_on_the_axis() -> None:
    rows = [_swept({"job.precision": each}, 8) for each in ("bf16", "fp8")]
    chart = sweep_chart(_sweep(*rows), Quantity.MFU, english)
    assert chart.x_names == ("bf16", "fp8")
    assert [(each.line, each.x) for each in chart.series] == [(False, (0.0, 1.0))]


def test_a_rate_in_proportion_to_the_accelerators_is_drawn_beside_it() -> None:
    found = _sweep(_nodes(1, 64, tokens_per_s=100.0), _nodes(2, 64, tokens_per_s=160.0))
    line, ideal = sweep_chart(found, Quantity.TOKENS_PER_SECOND, english).series
    assert (line.y, line.low, line.high) == ((100.0, 160.0), (50.0, 80.0), (125.0, 200.0))
    assert ideal == replace(
        line, label="in proportion", reference=True, y=(100.0, 200.0), low=(), high=(), texts=()
    )


def test_a_whole_run_has_the_interval_of_its_days() -> None:
    run = {"run_days_p10": 9.0, "run_days_p50": 10.0, "run_days_p90": 12.0, "run_cost": 100.0}
    found = _sweep(_nodes(1, 64, **run))
    drawn: dict[str, Any] = {figure.name: figure for figure in of_sweep(found, english)}
    days: Series = drawn["scaling-run-days"].series[0]
    cost: Series = drawn["scaling-run-cost"].series[0]
    assert (days.y, days.low, days.high) == ((10.0,), (9.0,), (12.0,))
    assert (cost.y, cost.low, cost.high) == ((100.0,), (90.0,), (120.0,))


def test_what_cannot_run_is_counted_and_not_drawn() -> None:
    failed = {"outcome": Outcome.NO_FIT, "step_time_s": None, "mfu": None}
    assert list(of_sweep(_sweep(_nodes(1, 64, **failed)), english)) == []
    chart = sweep_chart(_sweep(_nodes(1, 64), _nodes(2, 64, **failed)), Quantity.MFU, english)
    assert chart.caption.endswith("Combinations without such a forecast: 1.")


def test_scenarios_of_one_title_stand_apart() -> None:
    row = ComparedRow(scenario="a.toml", title="Llama", accelerators=64, **_FORECAST)
    found = partly(CompareFile, scenarios=(row, row))
    step: Any = next(comparison.of_comparison(found, english))
    assert [each.x for each in step.series] == [(0.0,), (1.0,)]
    assert [each.label for each in step.series] == ["1: Llama", "2: Llama"]
    assert step.x_names == ("1", "2")


def test_a_scenario_that_cannot_run_keeps_its_number_for_the_others() -> None:
    row = ComparedRow(scenario="a.toml", title="Llama", accelerators=64, **_FORECAST)
    failed = row.model_copy(update={"outcome": Outcome.REFUSED})
    step: Any = next(
        comparison.of_comparison(partly(CompareFile, scenarios=(failed, row)), english)
    )
    assert [(each.label, each.x) for each in step.series] == [("2: Llama", (1.0,))]
