"""What a step is made of adds up to what is said of it as a whole."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from simulator.api import Forecaster
from simulator.detail import memory_curves, operators_of
from simulator.given_layout import scenario_layout
from simulator.parallel.layout import ParallelLayout
from simulator.results import Category, StepResult
from simulator.scenario import load_scenario

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = [
    "llama3-70b-64-h100",
    "llama3.1-8b-fsdp",
    "gpt-18b-gpipe",
    "gpt-14.6b-zb-v",
    "llama3-8b-dualpipe-v",
    "llama3-8b-csv-schedule",
    "llama3-70b-64-gb200-offload",
    "llama3-70b-64-h100-modules",
    "mixtral-8x7b-64-h100",
]
"""Examples of different schedules, ZeRO stages and recomputations."""
_WHOLE = ["llama3-70b-64-h100", "gpt-18b-gpipe", "llama3.1-8b-fsdp", "mixtral-8x7b-64-h100"]
"""Those whose stages run at their own pace, with whole backward passes."""


@cache
def played(name: str) -> tuple[Forecaster, ParallelLayout, StepResult]:
    scenario = load_scenario(EXAMPLES / f"{name}.toml")
    forecaster, layout = Forecaster.of(scenario), scenario_layout(scenario)
    return forecaster, layout, forecaster.simulate(layout)


@pytest.mark.parametrize("name", NAMES)
def test_the_highest_point_of_a_memory_curve_is_the_peak_that_is_forecast(name: str) -> None:
    forecaster, layout, result = played(name)
    curves = memory_curves(forecaster, layout, result)
    assert [max(curve.allocated) for curve in curves] == [use.allocated for use in result.memory]


@pytest.mark.parametrize("name", NAMES)
def test_a_memory_curve_begins_and_ends_with_weights_gradients_and_states(name: str) -> None:
    forecaster, layout, result = played(name)
    for curve, use in zip(memory_curves(forecaster, layout, result), result.memory, strict=True):
        states = use.weights + use.gradients + use.optimizer
        assert curve.allocated[-1] == pytest.approx(states, rel=1e-12)
        assert list(curve.times) == sorted(set(curve.times))
        assert curve.times[-1] <= result.step_time


@pytest.mark.parametrize("name", _WHOLE)
def test_operators_add_up_to_the_breakdown(name: str) -> None:
    forecaster, layout, result = played(name)
    stage = result.breakdown.stage
    found: dict[Category, float] = {}
    for use in operators_of(forecaster, layout, stage):
        again = use.phase == "recompute"
        category = Category.RECOMPUTE if again else use.category
        found[category] = found.get(category, 0.0) + use.exposed
    said = {kind: result.breakdown.seconds[kind] for kind in found}
    assert found == pytest.approx(said, rel=1e-9)


def test_operators_hold_the_flops_of_the_hardware() -> None:
    # One stage: every rank runs the same operators.
    forecaster, layout, result = played("llama3.1-8b-fsdp")
    flops = sum(use.flops for use in operators_of(forecaster, layout, 0))
    assert flops * result.world_size == pytest.approx(result.hardware_flops, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_stage_has_a_breakdown_that_adds_up_to_the_step(name: str) -> None:
    _, layout, result = played(name)
    totals = [each.total for each in result.breakdowns]
    assert totals == pytest.approx([result.step_time] * layout.pp, rel=1e-9)
    assert result.breakdowns[result.breakdown.stage] == result.breakdown
