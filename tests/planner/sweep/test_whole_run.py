"""Rows of a scenario with a `[run]` table say what `goodput` says of it."""

from __future__ import annotations

from planner.goodput import run_plan
from planner.sweep.cases import Case, cases_of
from planner.sweep.comparison import Comparison
from planner.sweep.forecast import forecast_case
from planner.sweep.row import Outcome, Row
from simulator.api import Forecaster
from simulator.given_layout import scenario_layout
from tests.planner.sweep.sweeps import EXAMPLES, SMALL, sweep

RUN = EXAMPLES / "llama3-70b-512-h100-run.toml"
FEW = {"run.replications": [20], "run.failures.spares": [1], "run.checkpoint.interval": ["20 min"]}


def rows_of(**over: list[object]) -> tuple[tuple[Case, ...], tuple[Row, ...]]:
    """Return combinations of the run with few replications, and their rows."""
    named = {key.replace("__", "."): values for key, values in over.items()}
    cases = cases_of(sweep({**FEW, **named}, scenario=RUN))
    return cases, tuple(forecast_case(case)[1] for case in cases)


def test_a_row_has_the_whole_run_of_its_layout() -> None:
    (case,), (row,) = rows_of()
    layout = scenario_layout(case.scenario)
    step = Forecaster.of(case.scenario).estimate(layout)
    run = run_plan(case.scenario, layout, step)
    assert run.cost is not None
    assert run.energy.site is not None
    assert (row.run_days_p10, row.run_days_p50) == (run.days.p10, run.days.p50)
    assert (row.run_days_p90, row.run_goodput) == (run.days.p90, run.goodput.p50)
    assert (row.run_cost, row.run_energy_kwh) == (run.cost.p50, run.energy.site.p50 / 3.6e6)
    assert set(run.warnings) <= set(row.warnings)


def test_twice_the_price_is_twice_the_cost_and_the_same_days() -> None:
    cases, rows = rows_of(run__price=[2.0, 4.0])
    against = Comparison(cases=cases, rows=rows, changed=()).against_first(1)
    assert (against["run_cost"].ratio, against["run_days_p50"].ratio) == (2.0, 1.0)


def test_a_run_that_makes_no_progress_says_so_beside_its_step() -> None:
    _, (row,) = rows_of(run__failures__detection=["400 days"])
    assert (row.outcome, row.run_days_p50) == (Outcome.OK, None)
    assert "over 50 times as long" in row.reason


def test_a_scenario_without_a_run_table_has_no_whole_run() -> None:
    (case,) = cases_of(sweep({"cluster.nodes": [1]}, scenario=SMALL))
    row = forecast_case(case)[1]
    assert row.runs
    assert row.run_days_p50 is None
