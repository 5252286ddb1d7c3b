"""The task graph of a step: order, streams, and the strategies by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.estimate import estimate_step_time, estimate_timing
from simulator.parallel.layout import ScheduleName
from simulator.schedule.graph import build_graph
from simulator.schedule.tasks import GraphShape, StreamKind, Sync, TaskGraph, Work, WorkKind
from tests.simulator.steps import bare_shape, uniform_costs
from tests.simulator.strategies import pipelines

LAYERS = 3
ONE_STAGE = bare_shape(ScheduleName.ONE_F_ONE_B, 1, 1, 1)
THREE_LAYERS = replace(ONE_STAGE, segments=(LAYERS,))
ZERO_3 = replace(THREE_LAYERS, gathers=True, sync=Sync.EVERY_PASS)


@st.composite
def graph_shapes(draw: st.DrawFn) -> GraphShape:
    name, pp, vpp, micro_batches = draw(pipelines())
    return replace(
        bare_shape(name, pp, vpp, micro_batches),
        segments=tuple(draw(st.integers(1, 3)) for _ in range(pp * vpp)),
        sync=draw(st.sampled_from(Sync)),
        gathers=draw(st.booleans()),
        prefetch=draw(st.integers(0, 2)),
        blocking_send=draw(st.booleans()),
        blocking_data=draw(st.booleans()),
        send_after_reduce=draw(st.booleans()),
        tied=draw(st.booleans()) and pp > 1,
        tail=draw(st.sampled_from((WorkKind.JOIN, WorkKind.GATHER_CHUNK, WorkKind.BROADCAST))),
        head_gather=draw(st.booleans()),
    )


def seconds_of(shape: GraphShape, seconds: dict[WorkKind, float]) -> float:
    graph = build_graph(shape)
    return estimate_step_time(graph, uniform_costs(graph, seconds))


def ends_of(shape: GraphShape, seconds: dict[WorkKind, float], kind: WorkKind) -> list[float]:
    """Return when each task of a kind ends, in order of the tasks."""
    graph = build_graph(shape)
    ends = estimate_timing(graph, uniform_costs(graph, seconds)).end
    kinds = [graph.works[work].kind for work in graph.work]
    return [end for end, found in zip(ends, kinds, strict=True) if found is kind]


def count(graph: TaskGraph, kind: WorkKind) -> int:
    return sum(graph.works[work].kind is kind for work in graph.work)


@given(graph_shapes())
def test_every_task_follows_what_it_waits_for(shape: GraphShape) -> None:
    graph = build_graph(shape)
    rows = zip(graph.first, graph.second, strict=True)
    assert [t for t, waits in enumerate(rows) if max(waits) >= t] == []


@given(graph_shapes())
def test_passes_are_as_many_as_segments_times_micro_batches(shape: GraphShape) -> None:
    graph = build_graph(shape)
    expected = 0
    for place, cut in enumerate(shape.segments):
        passes = len(shape.pipeline.micro_batches(place, shape.micro_batches))
        # Where ZeRO-1 gathers at the start, only the first micro-batch is cut.
        cut_passes = passes if shape.gathers else int(shape.head_gather)
        expected += cut * cut_passes + passes - cut_passes
    assert count(graph, WorkKind.FORWARD) == expected


@given(graph_shapes())
def test_each_boundary_is_crossed_forward_and_back_by_each_micro_batch(shape: GraphShape) -> None:
    graph = build_graph(shape)
    pipeline, sends = shape.pipeline, (WorkKind.SEND_FORWARD, WorkKind.SEND_BACKWARD)
    crossed = [place for place in range(pipeline.places) if pipeline.sending_on[place]]
    passing = [len(pipeline.micro_batches(place, shape.micro_batches)) for place in crossed]
    assert [count(graph, kind) for kind in sends] == [sum(passing), sum(passing)]


@given(graph_shapes())
def test_the_step_ends_with_one_update_a_stage_after_all_gradients(shape: GraphShape) -> None:
    ones = dict.fromkeys(WorkKind, 1.0)
    updates = ends_of(shape, ones, WorkKind.OPTIMIZER)
    gradients = (WorkKind.BACKWARD, WorkKind.BACKWARD_WEIGHT, WorkKind.REDUCE)
    before = [end for kind in gradients for end in ends_of(shape, ones, kind)]
    assert len(updates) == shape.pp
    assert min(updates) >= max(before) + 1


@given(graph_shapes())
def test_equal_shapes_share_one_graph(shape: GraphShape) -> None:
    assert build_graph(shape) is build_graph(replace(shape))


def test_gradient_accumulation_reduces_once_after_all_micro_batches() -> None:
    shape = replace(ONE_STAGE, micro_batches=4, sync=Sync.AFTER)
    seconds = {WorkKind.FORWARD: 1.0, WorkKind.BACKWARD: 2.0, WorkKind.REDUCE: 5.0}
    assert seconds_of(shape, seconds) == 4 * (1 + 2) + 5


def test_zero_2_reduces_in_every_micro_batch() -> None:
    shape = replace(ONE_STAGE, micro_batches=4, sync=Sync.EVERY_PASS)
    # Passes of 3 s start every 5 s: the stream of reductions is the bottleneck after the first.
    seconds = {WorkKind.FORWARD: 1.0, WorkKind.BACKWARD: 2.0, WorkKind.REDUCE: 5.0}
    assert seconds_of(shape, seconds) == 3 + 4 * 5


def test_overlapped_reduction_leaves_only_the_last_bucket_exposed() -> None:
    shape = replace(THREE_LAYERS, sync=Sync.LAST_PASS)
    seconds = {WorkKind.FORWARD: 1.0, WorkKind.BACKWARD: 2.0, WorkKind.REDUCE: 1.5}
    # The forward pass runs in one piece, the last backward pass layer by layer.
    assert seconds_of(shape, seconds) == 1 + LAYERS * 2 + 1.5


def test_overlapped_reduction_slower_than_backward_is_exposed_from_the_first_bucket_on() -> None:
    shape = replace(THREE_LAYERS, sync=Sync.LAST_PASS)
    seconds = {WorkKind.FORWARD: 1.0, WorkKind.BACKWARD: 2.0, WorkKind.REDUCE: 3.0}
    assert seconds_of(shape, seconds) == 1 + 2 + LAYERS * 3


def test_only_the_last_backward_pass_reduces() -> None:
    graph = build_graph(replace(THREE_LAYERS, sync=Sync.LAST_PASS, micro_batches=4))
    assert count(graph, WorkKind.REDUCE) == LAYERS


@pytest.mark.parametrize(
    ("prefetch", "step"),
    [
        # Gather g = 2, forward f = 3, backward b = 4, reduce r = 1.
        # Each gather starts when the layer before is over: 3 (g + f) = 15. In the backward pass
        # each reduction waits for the gather issued before it: 3 (g + b) = 18 more, then r.
        (0, 34.0),
        # Gathers run one layer ahead: f ends at 5, 8, 11; the backward gathers end at 10, 13 and
        # 18, in time for b at 11, 15, 19, which ends at 23; then r.
        (1, 24.0),
        # Further ahead gains nothing: only the first gather was waited for.
        (2, 24.0),
    ],
)
def test_zero_3_gathers_ahead_as_far_as_prefetch_says(prefetch: int, step: float) -> None:
    seconds = {
        WorkKind.GATHER: 2.0,
        WorkKind.FORWARD: 3.0,
        WorkKind.BACKWARD: 4.0,
        WorkKind.REDUCE: 1.0,
    }
    assert seconds_of(replace(ZERO_3, prefetch=prefetch), seconds) == step


@pytest.mark.parametrize(
    ("prefetch", "gathers"),
    [
        # Each gather (4) starts when the layer before it (3) has been computed.
        (0, [4.0, 11.0, 18.0, 25.0, 32.0, 39.0]),
        # The stream of gathers never rests, but for one reduction (1) that goes before the last.
        # Layers end at 7, 11, 15 and, backward, at 19, 23, 28.
        (1, [4.0, 8.0, 12.0, 16.0, 20.0, 25.0]),
        (2, [4.0, 8.0, 12.0, 16.0, 20.0, 25.0]),
    ],
)
def test_zero_3_gathers_one_after_another_where_they_are_slower(
    prefetch: int, gathers: list[float]
) -> None:
    seconds = {
        WorkKind.GATHER: 4.0,
        WorkKind.FORWARD: 3.0,
        WorkKind.BACKWARD: 3.0,
        WorkKind.REDUCE: 1.0,
    }
    assert ends_of(replace(ZERO_3, prefetch=prefetch), seconds, WorkKind.GATHER) == gathers


def test_zero_3_gathers_every_layer_twice_a_micro_batch() -> None:
    graph = build_graph(replace(ZERO_3, micro_batches=2))
    assert count(graph, WorkKind.GATHER) == 2 * 2 * LAYERS


def test_parameters_gathered_at_the_start_hide_behind_earlier_chunks() -> None:
    shape = replace(
        bare_shape(ScheduleName.LOOPED_BFS, 1, 2, 1),
        head_gather=True,
        sync=Sync.AFTER,
        segments=(1, 1),
    )
    seconds = {WorkKind.GATHER: 2.0, WorkKind.FORWARD: 3.0}
    # The second chunk's gather (2..4) runs beside the first chunk's pass (2..5).
    assert seconds_of(shape, seconds) == 2 + 3 + 3


def test_blocking_transfers_hold_up_the_sender() -> None:
    shape = replace(bare_shape(ScheduleName.GPIPE, 2, 1, 3), blocking_send=True)
    seconds = {WorkKind.FORWARD: 2.0, WorkKind.SEND_FORWARD: 1.0}
    # The first stage needs 3 s a micro-batch, the second computes the last one after it.
    assert seconds_of(shape, seconds) == 3 * 3 + 2


def test_overlapped_transfers_delay_only_the_first_micro_batch() -> None:
    shape = bare_shape(ScheduleName.GPIPE, 2, 1, 3)
    seconds = {WorkKind.FORWARD: 2.0, WorkKind.SEND_FORWARD: 1.0}
    assert seconds_of(shape, seconds) == 2 + 1 + 3 * 2


def test_a_receiver_that_asks_waits_for_each_transfer() -> None:
    shape = replace(bare_shape(ScheduleName.GPIPE, 2, 1, 3), on_request=True)
    seconds = {WorkKind.FORWARD: 2.0, WorkKind.SEND_FORWARD: 1.0}
    # The second stage receives (1) and computes (2) each of three, from the end of the first.
    assert seconds_of(shape, seconds) == 2 + 3 * (1 + 2)


def test_sends_of_one_forward_one_backward_are_exchanges_between_its_ends() -> None:
    shape = replace(bare_shape(ScheduleName.ONE_F_ONE_B, 2, 1, 3), on_request=True)
    graph = build_graph(shape)
    kinds = (
        WorkKind.SEND_FORWARD,
        WorkKind.EXCHANGE_FORWARD,
        WorkKind.SEND_BACKWARD,
        WorkKind.EXCHANGE_BACKWARD,
    )
    # The first activation comes alone, and so does the last gradient.
    assert [count(graph, kind) for kind in kinds] == [1, 2, 1, 2]


@pytest.mark.parametrize(("waits", "first_stage_ends"), [(False, 2 + 3 + 5), (True, 2 + 5 + 3 + 5)])
def test_a_stage_may_hand_on_its_gradient_behind_its_own_reduction(
    waits: bool, first_stage_ends: float
) -> None:
    shape = replace(
        bare_shape(ScheduleName.GPIPE, 2, 1, 1), sync=Sync.LAST_PASS, send_after_reduce=waits
    )
    seconds = {WorkKind.FORWARD: 1.0, WorkKind.BACKWARD: 3.0, WorkKind.REDUCE: 5.0}
    # Forward through both (2), backward of the second (3), then of the first (3) and its own (5).
    ends = ends_of(shape, seconds, WorkKind.REDUCE)
    assert max(ends) == first_stage_ends + 3


def test_gathers_and_reductions_that_block_add_to_compute() -> None:
    seconds = {
        WorkKind.FORWARD: 1.0,
        WorkKind.BACKWARD: 2.0,
        WorkKind.GATHER: 3.0,
        WorkKind.REDUCE: 5.0,
    }
    shape = replace(ZERO_3, blocking_data=True)
    assert seconds_of(shape, seconds) == LAYERS * (3 + 1 + 3 + 2 + 5)


def test_tied_embedding_is_reduced_after_both_ends_are_done() -> None:
    shape = replace(bare_shape(ScheduleName.GPIPE, 2, 1, 1), tied=True)
    seconds = {WorkKind.FORWARD: 1.0, WorkKind.BACKWARD: 2.0, WorkKind.TIED_REDUCE: 5.0}
    assert ends_of(shape, seconds, WorkKind.TIED_REDUCE) == [11.0, 11.0]


def test_gradient_norm_joins_all_stages_before_any_update() -> None:
    shape = replace(bare_shape(ScheduleName.GPIPE, 3, 1, 1), sync=Sync.AFTER)
    seconds = {WorkKind.BACKWARD: 1.0, WorkKind.REDUCE: 4.0, WorkKind.OPTIMIZER: 1.0}
    # The first stage is the last to finish its backward pass.
    assert ends_of(shape, seconds, WorkKind.OPTIMIZER) == [8.0, 8.0, 8.0]


def test_parameters_are_spread_after_the_update_chunk_by_chunk() -> None:
    shape = replace(bare_shape(ScheduleName.LOOPED_BFS, 1, 2, 1), tail=WorkKind.BROADCAST)
    seconds = {WorkKind.OPTIMIZER: 1.0, WorkKind.BROADCAST: 3.0}
    assert ends_of(shape, seconds, WorkKind.BROADCAST) == [4.0, 7.0]


def test_streams_of_a_stage_are_its_own() -> None:
    graph = build_graph(bare_shape(ScheduleName.GPIPE, 2, 1, 1))
    lanes = {graph.works[w]: lane for w, lane in zip(graph.work, graph.stream, strict=True)}
    assert lanes[Work(WorkKind.SEND_BACKWARD, 1, 1)] == len(StreamKind) + StreamKind.SEND


ZERO_BUBBLE = bare_shape(ScheduleName.ZERO_BUBBLE_H1, 2, 1, 2)
PARTS = {
    WorkKind.FORWARD: 1.0,
    WorkKind.BACKWARD_INPUT: 2.0,
    WorkKind.BACKWARD_WEIGHT: 3.0,
}


def test_the_stage_before_does_not_wait_for_weight_gradients() -> None:
    # Stage 1: F 1-2, I 2-4, F 4-5, I 5-7, W 7-10, W 10-13. Stage 0: F, F, I 4-6, W 6-9, I 9-11, W.
    inputs = ends_of(ZERO_BUBBLE, PARTS, WorkKind.BACKWARD_INPUT)
    assert sorted(inputs) == [4.0, 6.0, 7.0, 11.0]
    assert seconds_of(ZERO_BUBBLE, PARTS) == 14.0


def test_gradients_are_reduced_after_the_last_weight_gradient() -> None:
    shape = replace(ZERO_BUBBLE, sync=Sync.LAST_PASS)
    assert seconds_of(shape, {**PARTS, WorkKind.REDUCE: 5.0}) == 14.0 + 5.0


def test_weight_gradients_gather_no_parameters() -> None:
    graph = build_graph(replace(ZERO_BUBBLE, gathers=True, sync=Sync.EVERY_PASS))
    # One gather a forward and an input gradient, one reduction a weight gradient.
    assert (count(graph, WorkKind.GATHER), count(graph, WorkKind.REDUCE)) == (8, 4)


def test_a_v_needs_no_transfer_where_it_turns() -> None:
    graph = build_graph(bare_shape(ScheduleName.ZERO_BUBBLE_V, 3, 2, 1))
    # Six places, five boundaries, one of them on stage 2.
    assert (count(graph, WorkKind.SEND_FORWARD), count(graph, WorkKind.SEND_BACKWARD)) == (4, 4)


def test_copies_of_dualpipe_reduce_once_both_stages_are_done() -> None:
    shape = replace(bare_shape(ScheduleName.DUALPIPE, 2, 2, 4), sync=Sync.AFTER)
    graph = build_graph(shape)
    # Stage 1 alone is slow: both stages wait for its gradients.
    costs = uniform_costs(graph, {WorkKind.REDUCE: 1.0})
    slow = [
        replace(cost, seconds=10.0) if work.kind in PARTS and work.stage == 1 else cost
        for work, cost in zip(graph.works, costs, strict=True)
    ]
    ends = estimate_timing(graph, slow).end
    first = [
        end
        for end, work in zip(ends, graph.work, strict=True)
        if graph.works[work].kind is WorkKind.REDUCE and graph.works[work].stage == 0
    ]
    done = max(
        end for end, work in zip(ends, graph.work, strict=True) if graph.works[work].kind in PARTS
    )
    assert first == [done + 1.0, done + 2.0]
