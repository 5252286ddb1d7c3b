"""FSDP in a pipeline that keeps what a backward pass gathered and reduces gradients once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.estimate import estimate_step_time
from simulator.hardware.software_constants import SoftwareConstants
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.schedule.graph import build_graph
from simulator.schedule.shape import graph_shape
from simulator.schedule.tasks import GraphShape, Sync, WorkKind
from tests.simulator.small_cpu import forecaster, with_software
from tests.simulator.steps import bare_shape, uniform_costs

STAGES, MICRO_BATCHES = 2, 4


def shape_of(schedule: ScheduleName, *, once: bool) -> GraphShape:
    sync = Sync.AFTER if once else Sync.EVERY_PASS
    bare = bare_shape(schedule, STAGES, 1, MICRO_BATCHES)
    return replace(bare, gathers=True, sync=sync, reduces_once=once)


def counts(shape: GraphShape) -> tuple[int, int]:
    """Return how often a step gathers and reduces, all stages together."""
    graph = build_graph(shape)
    kinds = [graph.works[work].kind for work in graph.work]
    return kinds.count(WorkKind.GATHER), kinds.count(WorkKind.REDUCE)


@pytest.mark.parametrize("schedule", [ScheduleName.GPIPE, ScheduleName.ONE_F_ONE_B])
def test_else_each_pass_gathers_and_each_backward_pass_reduces(schedule: ScheduleName) -> None:
    passes = STAGES * MICRO_BATCHES
    assert counts(shape_of(schedule, once=False)) == (2 * passes, passes)


def test_all_backward_passes_of_gpipe_use_what_the_first_gathered() -> None:
    gathers = STAGES * (MICRO_BATCHES + 1)
    assert counts(shape_of(ScheduleName.GPIPE, once=True)) == (gathers, STAGES)


def test_forward_passes_of_1f1b_behind_a_backward_pass_find_the_parameters_there() -> None:
    # First stage: two forward passes, then B F B F B and a last B, which finds them: 2 + 3.
    # Last stage: one forward pass, then B F B F B F B: 1 + 4.
    assert counts(shape_of(ScheduleName.ONE_F_ONE_B, once=True)) == (5 + 5, STAGES)


def test_the_reduction_follows_the_last_backward_pass() -> None:
    shape = replace(shape_of(ScheduleName.GPIPE, once=True), blocking_data=True)
    seconds = {WorkKind.FORWARD: 1.0, WorkKind.BACKWARD: 2.0, WorkKind.REDUCE: 5.0}
    graph = build_graph(shape)
    # GPipe of two: (micro-batches + 1) slots each way.
    slots = MICRO_BATCHES + STAGES - 1
    assert estimate_step_time(graph, uniform_costs(graph, seconds)) == slots * (1 + 2) + 5


@pytest.mark.parametrize(("pp", "sync"), [(1, Sync.EVERY_PASS), (2, Sync.AFTER)])
def test_pytorch_reduces_once_in_a_pipeline_alone(pp: int, sync: Sync) -> None:
    found = forecaster(with_software(SoftwareConstants(stack="pytorch-gloo")))
    layout = ParallelLayout(pp=pp, dp=4 // pp, zero_stage=3, schedule=ScheduleName.ONE_F_ONE_B)
    shape = graph_shape(found.program(layout))
    assert (shape.sync, shape.reduces_once) == (sync, pp > 1)
