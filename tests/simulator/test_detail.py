"""What a step is made of adds up to what is said of it as a whole."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from simulator.api import Forecaster
from simulator.detail import memory_curves, operators_of
from simulator.given_layout import scenario_layout
from simulator.parallel.checks import violations
from simulator.parallel.layout import ParallelLayout, Recompute, ScheduleName
from simulator.results import Category, StepResult
from simulator.scenario import load_scenario
from simulator.schedule.registry import SCHEDULES
from simulator.workload.job import TrainingJob
from simulator.workload.stack import load_stack
from tests.planner.scenarios import gpt, scenario
from tests.planner.test_mixed import two_generations

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


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("recompute", list(Recompute))
def test_the_peak_is_met_in_every_schedule_and_recomputation(
    schedule: ScheduleName, recompute: Recompute
) -> None:
    megatron = load_stack("megatron-core")
    stack = megatron.model_copy(update={"schedules": tuple(SCHEDULES)})
    job = TrainingJob(global_batch_size=32, seq_length=1024)
    given = scenario(gpt(16), job=job, stack=stack)
    forecaster, layout = Forecaster.of(given), small_layout(schedule, recompute)
    assert not [*violations(given.model.spec, job, stack, layout)]
    result = forecaster.simulate(layout)
    curves = memory_curves(forecaster, layout, result)
    assert [max(curve.allocated) for curve in curves] == [use.allocated for use in result.memory]


def test_the_peak_is_met_on_the_machines_of_a_mixed_cluster() -> None:
    forecaster = Forecaster.of(two_generations(memory="40 GiB"))
    layout = ParallelLayout(tp=4, pp=2, dp=2)
    result = forecaster.simulate(layout)
    curves = memory_curves(forecaster, layout, result)
    assert [max(curve.allocated) for curve in curves] == [use.allocated for use in result.memory]


def small_layout(schedule: ScheduleName, recompute: Recompute) -> ParallelLayout:
    """Return a layout of four stages, with two chunks each where the schedule has them."""
    single = (ScheduleName.GPIPE, ScheduleName.ONE_F_ONE_B, ScheduleName.ZERO_BUBBLE_H1)
    vpp = 1 if schedule in single else 2
    return ParallelLayout(pp=4, vpp=vpp, dp=2, schedule=schedule, recompute=recompute)


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
