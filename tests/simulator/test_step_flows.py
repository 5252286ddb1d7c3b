"""What waits for what: counted by hand, and never against time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from simulator.estimate import estimate_timing, spans_of
from simulator.parallel.layout import ScheduleName
from simulator.results import Span
from simulator.schedule.graph import build_graph
from simulator.schedule.registry import SCHEDULES
from simulator.schedule.tasks import GraphShape, Sync, WorkKind
from simulator.step_flows import Flow, flows_inside, step_flows
from tests.simulator.steps import bare_shape, uniform_costs

SECONDS: dict[WorkKind, float] = {
    kind: 1.0 + kind / 8 for kind in WorkKind if kind is not WorkKind.JOIN
}
ONE_CHUNK = (ScheduleName.GPIPE, ScheduleName.ONE_F_ONE_B, ScheduleName.ZERO_BUBBLE_H1)


def flows_of(shape: GraphShape) -> tuple[tuple[Span, ...], tuple[Flow, ...]]:
    """Return bars and flows of a step in which all but joins takes time."""
    graph = build_graph(shape)
    spans = spans_of(graph, estimate_timing(graph, uniform_costs(graph, SECONDS)))
    return spans, step_flows(graph, spans)


def counted(flows: Iterable[Flow]) -> Counter[tuple[str, str, str]]:
    return Counter((each.kind.value, each.source.name, each.target.name) for each in flows)


def test_a_pipeline_hands_on_and_back_and_reduces_segment_by_segment() -> None:
    """8 micro-batches cross 3 boundaries and turn at the end; 4 stages have 3 segments each."""
    bare = bare_shape(ScheduleName.ONE_F_ONE_B, pp=4, vpp=1, micro_batches=8)
    _, flows = flows_of(replace(bare, segments=(3,) * 4, sync=Sync.LAST_PASS))
    assert counted(flows) == {
        ("forward", "forward", "send_forward"): 3 * 8,
        ("forward", "send_forward", "forward"): 3 * 8,
        ("backward", "forward", "backward"): 8,
        ("backward", "backward", "send_backward"): 3 * 8,
        ("backward", "send_backward", "backward"): 3 * 8,
        ("gradients", "backward", "reduce"): 4 * 3,
        ("gradients", "reduce", "optimizer"): 4 * 3,
        ("gradient norm", "reduce", "optimizer"): 3,
    }


def test_zero_3_gathers_for_every_pass_and_reduces_after_every_backward_one() -> None:
    """2 micro-batches of 5 segments: 20 gathers, of which all but 2 wait for room."""
    bare = bare_shape(ScheduleName.ONE_F_ONE_B, pp=1, vpp=1, micro_batches=2)
    shape = replace(bare, segments=(5,), sync=Sync.EVERY_PASS, gathers=True, prefetch=1)
    _, flows = flows_of(shape)
    assert counted(flows) == {
        ("parameters", "gather", "forward"): 2 * 5,
        ("parameters", "gather", "backward"): 2 * 5,
        ("prefetch", "forward", "gather"): 2 * 5,
        ("prefetch", "backward", "gather"): 2 * 5 - 2,
        ("backward", "forward", "backward"): 2,
        ("gradients", "backward", "reduce"): 2 * 5,
        ("gradients", "reduce", "optimizer"): 5,
    }


def test_zero_1_spreads_parameters_at_the_start_or_after_the_update() -> None:
    bare = bare_shape(ScheduleName.ONE_F_ONE_B, pp=1, vpp=1, micro_batches=2)
    _, at_start = flows_of(replace(bare, segments=(5,), head_gather=True))
    _, at_end = flows_of(replace(bare, segments=(5,), tail=WorkKind.GATHER_CHUNK))
    turns = {
        ("backward", "forward", "backward"): 2,
        ("gradients", "backward", "optimizer"): 1,
    }
    assert counted(at_start) == {**turns, ("parameters", "gather", "forward"): 5}
    assert counted(at_end) == {**turns, ("parameters", "optimizer", "gather_chunk"): 1}


def test_a_pass_put_off_follows_its_own_first_part_and_not_what_that_sends() -> None:
    _, flows = flows_of(bare_shape(ScheduleName.ZERO_BUBBLE_H1, pp=3, vpp=1, micro_batches=4))
    weights = [each for each in flows if each.target.name == "backward_weight"]
    assert counted(weights) == {("weight gradients", "backward_input", "backward_weight"): 3 * 4}
    assert {(f.source.stage, f.source.micro_batch) for f in weights} == {
        (f.target.stage, f.target.micro_batch) for f in weights
    }


@pytest.mark.parametrize("schedule", [name for name in SCHEDULES if name != ScheduleName.CSV])
def test_every_transfer_has_a_sender_and_a_receiver_and_no_flow_goes_back_in_time(
    schedule: ScheduleName,
) -> None:
    vpp = 1 if schedule in ONE_CHUNK else 2
    bare = bare_shape(schedule, pp=4, vpp=vpp, micro_batches=8)
    spans, flows = flows_of(replace(bare, sync=Sync.AFTER, tied=True))
    sends = Counter(span for span in spans if span.name.startswith("send"))
    assert Counter(f.target for f in flows if f.target in sends) == sends
    assert Counter(f.source for f in flows if f.source in sends) == sends
    late = [f for f in flows if f.source.stop > f.target.start + 1e-9]
    strange = [f for f in flows if not {f.source, f.target} <= set(spans)]
    assert (late, strange, len(sends) > 0) == ([], [], True)


def test_bars_of_no_length_are_stepped_over() -> None:
    """Transfers that take no time: each pass waits for the one on the stage before."""
    graph = build_graph(bare_shape(ScheduleName.GPIPE, pp=2, vpp=1, micro_batches=3))
    seconds = {WorkKind.FORWARD: 1.0, WorkKind.BACKWARD: 2.0, WorkKind.OPTIMIZER: 1.0}
    spans = spans_of(graph, estimate_timing(graph, uniform_costs(graph, seconds)))
    assert counted(step_flows(graph, spans)) == {
        ("forward", "forward", "forward"): 3,
        ("backward", "forward", "backward"): 3,
        ("backward", "backward", "backward"): 3,
        ("gradients", "backward", "optimizer"): 2,
        ("gradient norm", "backward", "optimizer"): 1,
    }


def test_a_collective_is_joined_to_what_stands_before_and_behind_it_in_its_pass() -> None:
    """The first has nothing before it, the hidden one begins while b runs, c is of another pass."""
    passes = [
        Span(stage=0, stream="compute", name="forward", start=0.0, stop=6.0),
        Span(stage=0, stream="compute", name="forward", start=6.0, stop=8.0),
    ]
    pieces = [
        Span(stage=0, stream="collective", name="first", start=0.0, stop=1.0),
        Span(stage=0, stream="operator", name="a", start=1.0, stop=2.0),
        Span(stage=0, stream="operator", name="b", start=2.0, stop=4.0),
        Span(stage=0, stream="collective", name="hidden", start=3.0, stop=5.0),
        Span(stage=0, stream="collective", name="last", start=5.0, stop=6.0),
        Span(stage=0, stream="operator", name="c", start=6.0, stop=8.0),
    ]
    found = [(f.source.name, f.target.name) for f in flows_inside(passes, pieces)]
    assert found == [("first", "a"), ("a", "hidden"), ("hidden", "last")]
