"""Quantities that follow from a result."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.results import Breakdown, Category, MemoryUse, Provenance, StepResult

USE = MemoryUse(
    stage=0,
    first_rank=0,
    last_rank=7,
    weights=1.0,
    gradients=2.0,
    optimizer=4.0,
    activations=8.0,
    transient=16.0,
    logits=32.0,
    fragmentation=64.0,
    context=128.0,
    moment="backward pass",
)
RESULT = StepResult(
    step_time=2.0,
    low=1.5,
    high=2.5,
    tokens=1000,
    world_size=4,
    model_flops=400.0,
    hardware_flops=480.0,
    peak_flops=100.0,
    breakdown=Breakdown(
        stage=0,
        seconds={
            Category.GEMM: 1.0,
            Category.TENSOR_COMM: 0.1,
            Category.CONTEXT_COMM: 0.2,
            Category.PIPELINE_COMM: 0.3,
            Category.DATA_COMM: 0.1,
            Category.BUBBLE: 0.3,
        },
    ),
    memory=(USE, replace(USE, stage=1, context=0.0)),
    memory_capacity=255.0,
    provenance=Provenance(
        traincast="0", profile="p", profile_sha256="", stack="s", seed=None, constants={}
    ),
)


def test_utilisation_is_flops_over_what_the_peak_could_do() -> None:
    assert (RESULT.mfu, RESULT.hfu) == pytest.approx((0.5, 0.6))


def test_tokens_a_second_are_those_of_all_ranks() -> None:
    assert RESULT.tokens_per_second == 500.0


def test_breakdown_adds_up_and_names_what_is_exposed() -> None:
    found = RESULT.breakdown
    assert (found.total, found.exposed_communication, found.bubble) == pytest.approx(
        (2.0, 0.7, 0.3)
    )


def test_allocated_and_reserved_memory_are_two_numbers() -> None:
    assert (USE.allocated, USE.reserved) == (63.0, 255.0)


@pytest.mark.parametrize(("capacity", "fits"), [(255.0, True), (254.9, False)])
def test_the_fullest_stage_decides_whether_it_fits(capacity: float, fits: bool) -> None:
    assert replace(RESULT, memory_capacity=capacity).fits is fits
