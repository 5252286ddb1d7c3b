"""Forecasts on a machine where parts of a model, launches and interference were measured."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.hardware.accelerator import Dtype
from simulator.hardware.software_constants import (
    KernelClass,
    MeasuredPart,
    MeasuredPass,
    SoftwareConstants,
)
from simulator.parallel.layout import ParallelLayout, Recompute, ScheduleName
from simulator.results import Category, StepResult
from simulator.workload.calibrated import with_software
from tests.fakes import fake_constants, fake_profile, fake_stack, tiny_job, tiny_model
from tests.simulator.steps import forecaster

MODEL = tiny_model()
JOB = tiny_job(precision=Dtype.FP32)
LAYERS = MODEL.num_hidden_layers
FORWARD, BACKWARD = 2.0, 5.0
_COMPUTE = (Category.GEMM, Category.ATTENTION, Category.MEMORY_BOUND, Category.LAUNCH)


def measured(part: MeasuredPart, **changes: object) -> MeasuredPass:
    """Return a pass over a part of `MODEL` at micro-batch 1 that takes 2 s and 5 s."""
    (layer, *_) = MODEL.layers()
    fields: dict[str, object] = {
        "part": part,
        "hidden_size": MODEL.hidden_size,
        "width": MODEL.vocab_size,
        "micro_batch": 1,
        "seq": JOB.seq_length,
        "precision": Dtype.FP32,
        "forward": FORWARD,
        "backward": BACKWARD,
    }
    if part is MeasuredPart.LAYER:
        assert layer.attention is not None
        assert layer.mlp is not None
        fields |= {
            "width": layer.mlp.intermediate_size,
            "heads": layer.attention.num_attention_heads,
            "kv_heads": layer.attention.num_key_value_heads,
            "gated": layer.mlp.gated,
        }
    return MeasuredPass(**(fields | changes))


def software(*passes: MeasuredPass, **changes: object) -> SoftwareConstants:
    return SoftwareConstants(stack="fake", passes=passes, **changes)


def step(layout: ParallelLayout, known: SoftwareConstants | None) -> StepResult:
    machine = fake_profile(constants=fake_constants(software=known))
    job = JOB.model_copy(update={"global_batch_size": layout.dp * layout.pp})
    return forecaster(layout, model=MODEL, job=job, profile=machine).estimate(layout)


def compute_of(result: StepResult) -> float:
    return sum(result.breakdown.seconds[category] for category in _COMPUTE)


def test_measured_parts_take_the_measured_seconds() -> None:
    parts = [measured(part) for part in MeasuredPart]
    result = step(ParallelLayout(), software(*parts))
    assert compute_of(result) == pytest.approx((LAYERS + 2) * (FORWARD + BACKWARD))


@pytest.mark.parametrize(
    "changes", [{"micro_batch": 2}, {"seq": 7}, {"tp": 2}, {"heads": 1}, {"width": 5}]
)
def test_a_pass_that_was_measured_otherwise_changes_nothing(changes: dict[str, object]) -> None:
    other = software(measured(MeasuredPart.LAYER, **changes))
    assert step(ParallelLayout(), other) == step(ParallelLayout(), software())


def test_collectives_of_a_measured_layer_stay_as_they_are() -> None:
    layout = ParallelLayout(tp=2)
    known = software(measured(MeasuredPart.LAYER, tp=2))
    seconds = [step(layout, each).breakdown.seconds[Category.TENSOR_COMM] for each in (known, None)]
    assert seconds[0] == pytest.approx(seconds[1])


def test_halves_of_a_measured_backward_pass_add_up_to_it() -> None:
    known = software(*(measured(part) for part in MeasuredPart))
    layout = ParallelLayout(pp=2, schedule=ScheduleName.ZERO_BUBBLE_H1)
    machine = fake_profile(constants=fake_constants(software=known))
    cast = forecaster(layout, model=MODEL, job=JOB, profile=machine)
    program = cast.program(layout)
    halves = cast.costs.split_segment(program, program.chunks[0].whole)
    own = program.chunks[0].whole
    layers = sum(n for _, n in own.layers)
    assert sum(half.seconds for half in halves) == pytest.approx((layers + 1) * BACKWARD)


def test_a_measured_layer_that_is_computed_again_takes_its_forward_time() -> None:
    known = software(*(measured(part) for part in MeasuredPart))
    result = step(ParallelLayout(recompute=Recompute.FULL), known)
    assert result.breakdown.seconds[Category.RECOMPUTE] == pytest.approx(LAYERS * FORWARD)


def test_the_step_scale_multiplies_modelled_compute() -> None:
    plain = compute_of(step(ParallelLayout(), None))
    assert compute_of(step(ParallelLayout(), software(step_scale=3.0))) == pytest.approx(3 * plain)


def test_the_step_scale_multiplies_measured_passes_too() -> None:
    parts = [measured(part) for part in MeasuredPart]
    result = step(ParallelLayout(), software(*parts, step_scale=1.5))
    assert compute_of(result) == pytest.approx(1.5 * (LAYERS + 2) * (FORWARD + BACKWARD))


def test_measured_launches_replace_those_of_the_stack_that_was_measured() -> None:
    stacks = [fake_stack(name=name) for name in ("fake", "other")]
    known = software(cpu_launch=1e-3, cpu_collective=2e-3)
    launches = [with_software(stack, known).kernels.cpu_launch for stack in stacks]
    assert launches == [1e-3, 0.0]


@pytest.mark.parametrize("changes", [{"step_scale": 3.0}, {"passes": True}])
def test_passes_and_scale_of_another_stack_are_left_out_and_said(changes: dict[str, Any]) -> None:
    parts = tuple(measured(part) for part in MeasuredPart)
    own = {"passes": parts} if "passes" in changes else changes
    found = step(ParallelLayout(), SoftwareConstants(stack="other", **own))
    plain = step(ParallelLayout(), None)
    assert found.breakdown == plain.breakdown
    (said,) = set(found.provenance.warnings) - set(plain.provenance.warnings)
    assert "calibrated with the stack other" in said


def test_measured_interference_holds_for_every_stack() -> None:
    known = software(compute_slowdown={KernelClass.GEMM: 1.5}, comm_slowdown=1.25)
    overlap = with_software(fake_stack(name="other"), known).overlap
    assert (overlap.compute_slowdown, overlap.comm_slowdown) == ({KernelClass.GEMM: 1.5}, 1.25)


def test_measured_steps_set_the_interval_of_their_stack() -> None:
    result = step(ParallelLayout(), software(step_spread=0.04))
    assert result.high == pytest.approx(1.04 * result.step_time)
