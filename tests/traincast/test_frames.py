"""Data frames say what the results say."""

from __future__ import annotations

from pathlib import Path

import pytest

import traincast
from traincast import StepResult

SCENARIO = Path(__file__).resolve().parents[2] / "examples" / "gpt-18b-gpipe.toml"


@pytest.fixture(name="result", scope="module")
def _result() -> StepResult:
    return traincast.simulate_step(SCENARIO)


def test_breakdown_adds_up_to_the_step(result: StepResult) -> None:
    frame = traincast.breakdown_frame(result)
    totals = (frame["seconds"].sum(), frame["share"].sum())
    assert totals == pytest.approx((result.step_time, 1.0))


def test_memory_has_one_row_a_stage(result: StepResult) -> None:
    frame = traincast.memory_frame(result)
    assert frame["reserved"].to_dict() == {use.stage: use.reserved for use in result.memory}


def test_spans_are_sorted_by_start(result: StepResult) -> None:
    frame = traincast.span_frame(result)
    assert (len(frame), frame["start"].is_monotonic_increasing) == (len(result.spans), True)


def test_an_estimate_has_no_spans() -> None:
    frame = traincast.span_frame(traincast.estimate_step(SCENARIO))
    assert (len(frame), "start" in frame) == (0, True)


def test_dp_is_what_fills_the_cluster() -> None:
    from simulator.given_layout import scenario_layout

    assert scenario_layout(traincast.load_scenario(SCENARIO)).dp == 1
