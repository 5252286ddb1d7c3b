"""A row says what plan and simulate say of the same scenario, or why there is nothing to say."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner.sweep.cases import Case, cases_of, scenario_cases
from planner.sweep.comparison import Against, Comparison, compare_rows
from planner.sweep.forecast import forecast_case
from planner.sweep.row import Outcome, Row
from planner.sweep.run import Swept, Workers, run_cases
from planner.sweep.sweep_file import Method
from simulator.api import Forecaster
from simulator.given_layout import scenario_layout
from simulator.units import SECONDS_PER_DAY
from tests.planner.sweep.sweeps import EXAMPLES, SMALL, sweep


def row_of(over: dict[str, list[Any]], what: str = "estimate") -> Row:
    """Return the only row of a sweep."""
    (case,) = cases_of(sweep(over, what=what))
    return forecast_case(case)[1]


@pytest.mark.parametrize("what", ["simulate", "estimate"])
def test_a_layout_has_the_numbers_of_its_step(what: str) -> None:
    (case,) = scenario_cases((str(SMALL),), Method(what))
    row = forecast_case(case)[1]
    layout = scenario_layout(case.scenario)
    forecaster = Forecaster.of(case.scenario)
    step = forecaster.simulate(layout) if what == "simulate" else forecaster.estimate(layout)
    assert row.outcome is Outcome.OK
    assert (row.step_time_s, row.low_s, row.high_s) == (step.step_time, step.low, step.high)
    assert (row.tokens_per_s, row.mfu) == (step.tokens_per_second, step.mfu)
    assert (row.axes["dp"], row.peak_memory_bytes) == (layout.dp, step.peak_memory)
    assert row.warnings == step.provenance.warnings != ()


def test_a_plan_has_the_numbers_of_its_first_layout_and_of_the_run() -> None:
    (case,) = scenario_cases((str(EXAMPLES / "lan-ddp.toml"),), Method.PLAN)
    found = planner.plan(case.scenario)
    row = forecast_case(case)[1]
    best = found.layouts[0]
    assert (row.step_time_s, row.layout) == (best.step_time, str(best.layout))
    assert row.tokens_per_s_per_accelerator == best.tokens_per_second / 4


def test_days_and_hours_are_of_all_tokens() -> None:
    # 8.4e9 tokens in steps of 256 x 8192 are 4005.4, and the last step is a whole one.
    row = row_of({"job.tokens": [8_400_000_000], "job.global_batch_size": [256]})
    assert row.step_time_s is not None
    seconds = 4006 * row.step_time_s
    assert row.steps == 4006
    assert row.days == pytest.approx(seconds / SECONDS_PER_DAY, rel=1e-12)
    assert row.accelerator_hours == pytest.approx(seconds / 3600 * 8, rel=1e-12)


def test_a_layout_that_is_too_large_keeps_its_numbers_and_says_by_how_much() -> None:
    row = row_of({"accelerator.memory": ["20 GiB"]})
    assert row.outcome is Outcome.NO_FIT
    assert "of 20.00 GiB of an accelerator" in row.reason
    assert row.step_time_s is not None


def test_a_plan_that_finds_nothing_says_what_comes_closest() -> None:
    row = row_of({"accelerator.memory": ["4 GiB"], "search.tp": [[8]]}, "plan")
    assert row.outcome is Outcome.NO_FIT
    assert "the closest reserves" in row.reason
    assert row.step_time_s is None


@pytest.mark.parametrize(
    ("over", "rule"),
    [
        ({"job.precision": ["fp4"]}, "no peak or no constants"),
        ({"layout.tp": [3]}, "must divide the 8 accelerators"),
        ({"job.global_batch_size": [7]}, "must divide by"),
    ],
)
def test_what_cannot_be_is_a_row_with_its_rule(over: dict[str, list[Any]], rule: str) -> None:
    row = row_of(over)
    assert row.outcome is Outcome.REFUSED
    assert rule in row.reason
    assert row.profile == "dgx-h100"


def test_numbers_out_of_all_proportion_are_refused() -> None:
    row = row_of({"accelerator.memory_bandwidth": ["1e-300 B/s"]})
    assert (row.outcome, "not finite" in row.reason) == (Outcome.REFUSED, True)


def swept_nodes() -> tuple[tuple[Case, ...], tuple[Row, ...]]:
    """Return a scenario on one node and on two."""
    found = run_cases(cases_of(sweep({"cluster.nodes": [1, 2]})), workers=Workers(jobs=1))
    return found.cases, found.rows


def test_a_comparison_names_what_differs_and_has_differences_and_ratios() -> None:
    cases, rows = swept_nodes()
    one, two = (
        row.model_copy(update={"step_time_s": step})
        for row, step in zip(rows, (8.0, 6.0), strict=True)
    )
    found = compare_rows(Swept(cases=cases, rows=(one, two)))
    assert [(each.key, each.values) for each in found.changed] == [("cluster.nodes", (1, 2))]
    assert found.against_first(1)["step_time_s"] == Against(difference=-2.0, ratio=0.75)
    assert found.against_first(1)["accelerators"] == Against(difference=8, ratio=2.0)
    assert found.against_first(1)["cost"] == Against(difference=None, ratio=None)


@pytest.mark.parametrize(("high", "told"), [(1.2, True), (0.9, False)])
def test_overlapping_intervals_are_told(high: float, told: bool) -> None:
    cases, rows = swept_nodes()
    ends = [{"low_s": 1.0, "high_s": 2.0}, {"low_s": 0.5, "high_s": high}]
    moved = tuple(row.model_copy(update=end) for row, end in zip(rows, ends, strict=True))
    notes = compare_rows(Swept(cases=cases, rows=moved)).notes
    assert any("intervals of 1 and 2 overlap" in note for note in notes) is told


def test_one_that_cannot_run_has_no_ratio() -> None:
    cases, rows = swept_nodes()
    stopped = rows[1].model_copy(update={"outcome": Outcome.NO_FIT})
    found: Comparison = compare_rows(Swept(cases=cases, rows=(rows[0], stopped)))
    assert set(found.against_first(1).values()) == {Against(difference=None, ratio=None)}
