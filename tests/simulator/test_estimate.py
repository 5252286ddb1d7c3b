"""The closed-form recursion and the breakdown, on hand-made graphs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.priced import WorkCost
from simulator.estimate import (
    Timing,
    breakdown_of,
    busiest_stage,
    estimate_step_time,
    estimate_timing,
)
from simulator.parallel.layout import ScheduleName
from simulator.results import Category
from simulator.schedule.graph import build_graph
from simulator.schedule.tasks import GraphShape, Sync, TaskGraph, WorkKind
from tests.simulator.steps import bare_shape, uniform_costs

TWO_STAGES = bare_shape(ScheduleName.GPIPE, 2, 1, 1)
SECONDS = {
    WorkKind.FORWARD: 1.0,
    WorkKind.BACKWARD: 2.0,
    WorkKind.SEND_FORWARD: 0.5,
    WorkKind.SEND_BACKWARD: 0.25,
    WorkKind.REDUCE: 3.0,
}


def played(
    shape: GraphShape, seconds: dict[WorkKind, float]
) -> tuple[TaskGraph, list[WorkCost], Timing]:
    graph = build_graph(shape)
    costs = uniform_costs(graph, seconds)
    sends = (WorkKind.SEND_FORWARD, WorkKind.SEND_BACKWARD)
    costs = [
        replace(cost, by_category={}) if work.kind in sends else cost
        for work, cost in zip(graph.works, costs, strict=True)
    ]
    return graph, costs, estimate_timing(graph, costs)


def breakdown(shape: GraphShape, stage: int) -> dict[Category, float]:
    graph, costs, timing = played(shape, SECONDS)
    found = breakdown_of(graph, costs, timing, stage)
    return {category: seconds for category, seconds in found.items() if seconds}


def test_a_micro_batch_goes_there_and_back() -> None:
    graph, _, timing = played(TWO_STAGES, SECONDS)
    ends = dict(zip([graph.works[w].kind.name for w in graph.work], timing.end, strict=True))
    # 1 + 0.5 + 1 on the way there, 2 + 0.25 + 2 on the way back.
    assert (ends["SEND_FORWARD"], timing.step_time) == (1.5, 6.75)


def test_starts_are_ends_less_durations() -> None:
    graph, costs, timing = played(TWO_STAGES, SECONDS)
    durations = [end - start for start, end in zip(timing.start, timing.end, strict=True)]
    assert durations == pytest.approx([costs[work].seconds for work in graph.work])


def test_waiting_for_the_other_stage_is_a_bubble() -> None:
    # Stage 0 waits from 1 to 4.75; stage 1 waits 1.5 at first, and at the end for stage 0.
    assert [breakdown(TWO_STAGES, stage) for stage in range(2)] == [
        {Category.GEMM: 3.0, Category.BUBBLE: 3.75},
        {Category.GEMM: 3.0, Category.BUBBLE: 3.75},
    ]


def test_blocking_transfers_are_pipeline_communication() -> None:
    shape = replace(TWO_STAGES, blocking_send=True)
    assert breakdown(shape, 0) == {
        Category.GEMM: 3.0,
        Category.PIPELINE_COMM: 0.5,
        Category.BUBBLE: 3.25,
    }


def test_waiting_for_gradients_is_data_communication() -> None:
    shape = replace(bare_shape(ScheduleName.GPIPE, 1, 1, 1), sync=Sync.AFTER)
    assert breakdown(shape, 0) == {Category.GEMM: 3.0, Category.DATA_COMM: 3.0}


def test_waiting_for_parameters_is_data_communication() -> None:
    shape = replace(bare_shape(ScheduleName.GPIPE, 1, 1, 1), tail=WorkKind.BROADCAST)
    graph, costs, timing = played(shape, {WorkKind.FORWARD: 1.0, WorkKind.BROADCAST: 4.0})
    found = breakdown_of(graph, costs, timing, 0)
    assert (found[Category.GEMM], found[Category.DATA_COMM]) == (1.0, 4.0)


def test_busiest_stage_is_the_one_that_computes_longest() -> None:
    graph = build_graph(bare_shape(ScheduleName.GPIPE, 3, 1, 2))
    costs = uniform_costs(graph, SECONDS)
    costs = [
        replace(cost, seconds=9.0) if work == (WorkKind.FORWARD, 1, 1, -1) else cost
        for work, cost in zip(graph.works, costs, strict=True)
    ]
    assert busiest_stage(graph, costs) == 1


def test_a_slow_stage_is_the_busiest() -> None:
    graph, costs, _ = played(bare_shape(ScheduleName.GPIPE, 3, 1, 2), SECONDS)
    assert busiest_stage(graph, costs, [1.0, 1.0, 1.5]) == 2


@given(
    kind=st.sampled_from(list(SECONDS)),
    more=st.floats(0.0, 10.0),
    sync=st.sampled_from(Sync),
    blocking=st.booleans(),
)
def test_longer_work_never_shortens_the_step(
    kind: WorkKind, more: float, sync: Sync, blocking: bool
) -> None:
    shape = replace(
        bare_shape(ScheduleName.ONE_F_ONE_B, 3, 1, 4), sync=sync, blocking_send=blocking
    )
    graph = build_graph(shape)
    longer = {**SECONDS, kind: SECONDS[kind] + more}
    before, after = (
        estimate_step_time(graph, uniform_costs(graph, seconds)) for seconds in (SECONDS, longer)
    )
    assert after >= before
