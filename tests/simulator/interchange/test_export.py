"""A step as traces: small ones by hand, and that a replay of any takes as long as the step."""

from __future__ import annotations

from collections import Counter

import pytest

from simulator.errors import InputError, UnsupportedError
from simulator.interchange.checks import check_workload
from simulator.interchange.prices import recorded_seconds
from simulator.interchange.records import NodeKind
from simulator.interchange.replay import play
from simulator.interchange.result import replay
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ContextExchange, ParallelLayout, Recompute, ScheduleName
from tests.fakes import fake_profile, fake_stack, tiny_job, tiny_model
from tests.simulator.interchange.traces import estimated, traced
from tests.simulator.steps import forecaster

LAYOUTS = [
    ParallelLayout(),
    ParallelLayout(dp=4),
    ParallelLayout(tp=2, dp=2),
    ParallelLayout(tp=4, sequence_parallel=True, recompute=Recompute.FULL),
    ParallelLayout(pp=2, dp=2),
    ParallelLayout(pp=4, dp=2),
    ParallelLayout(tp=2, pp=2, dp=2, zero_stage=1),
    ParallelLayout(pp=2, vpp=2, dp=2),
    ParallelLayout(dp=8, zero_stage=3),
    ParallelLayout(pp=2, dp=4, zero_stage=2),
    ParallelLayout(dp=4, zero_stage=3, shard_size=2),
    ParallelLayout(pp=2, schedule=ScheduleName.GPIPE, dp=2),
    ParallelLayout(pp=2, schedule=ScheduleName.ZERO_BUBBLE_H1, dp=2),
    ParallelLayout(pp=2, vpp=2, schedule=ScheduleName.ZERO_BUBBLE_V, dp=2),
    ParallelLayout(cp=2, cp_comm_type=ContextExchange.ALL_GATHER, dp=2),
    ParallelLayout(cp=4, cp_comm_type=ContextExchange.ULYSSES),
]


def test_two_data_ranks_compute_four_times_each_way_and_reduce_once() -> None:
    layout = ParallelLayout(dp=2)
    trace = traced(layout)
    (nodes,) = trace.stages
    kinds = Counter((node.kind, node.name) for node, _ in nodes)
    assert kinds == {
        (NodeKind.COMPUTE, "forward"): 4,
        (NodeKind.COMPUTE, "backward"): 4,
        (NodeKind.COLLECTIVE, "all_reduce"): 1,
        (NodeKind.COMPUTE, "optimizer"): 1,
    }
    assert trace.groups == {1: (0, 1)}
    reduction = next(node for node, _ in nodes if node.kind is NodeKind.COLLECTIVE)
    # Two bytes of gradient for each parameter, all of which the two ranks hold.
    program = forecaster(layout).program(layout)
    assert reduction.size == 2 * program.stage_parameters(0)


def test_flop_of_a_pass_are_those_of_its_blocks() -> None:
    layout = ParallelLayout(dp=2)
    cast = forecaster(layout)
    (nodes,) = traced(layout, cast).stages
    counted = sum(node.flops for node, _ in nodes)
    assert counted * layout.dp == pytest.approx(cast.estimate(layout).hardware_flops)


def test_pipeline_transfers_are_sends_and_receives_between_the_same_places() -> None:
    trace = traced(ParallelLayout(tp=2, pp=2))
    rank = trace.rank(1)
    sends = [node for node in rank if node.kind is NodeKind.SEND]
    assert {node.peer for node in sends} == {3}
    assert len(sends) == 8
    assert {node.peer for node in trace.rank(3) if node.kind is NodeKind.RECEIVE} == {1}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_replay_with_the_trace_s_times_takes_as_long_as_the_estimate(
    layout: ParallelLayout,
) -> None:
    workload = traced(layout).workload()
    check_workload(workload)
    assert play(workload, recorded_seconds).step_time == pytest.approx(estimated(layout), rel=1e-9)


@pytest.mark.parametrize("size", [64, 1024])
def test_collectives_that_compute_hides_make_a_step_no_longer_than_they_do(size: int) -> None:
    """Half of each tensor-parallel collective runs beside the product that it belongs to."""
    layout = ParallelLayout(tp=4, sequence_parallel=True)
    model, stack = tiny_model(hidden_size=size), fake_stack(overlap={"tensor_fraction": 0.5})
    cast = forecaster(layout, model=model, stack=stack)
    found = play(traced(layout, cast).workload(), recorded_seconds).step_time
    assert found == pytest.approx(estimated(layout, cast), rel=1e-9)
    plain = forecaster(layout, model=model)
    assert found < estimated(layout, plain)


@pytest.mark.parametrize("layout", [ParallelLayout(cp=2), ParallelLayout(cp=4, tp=2)], ids=str)
def test_a_ring_of_keys_and_values_takes_as_long_as_it_is_estimated_to(
    layout: ParallelLayout,
) -> None:
    cast = forecaster(layout, model=tiny_model(hidden_size=1024))
    found = play(traced(layout, cast).workload(), recorded_seconds).step_time
    assert found == pytest.approx(estimated(layout, cast), rel=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_replay_on_the_same_machine_takes_as_long_as_the_simulation(
    layout: ParallelLayout,
) -> None:
    """A network without latency: the norm of the gradient, 4 bytes, is all that is added."""
    simulated = forecaster(layout).simulate(layout, spans=False).step_time
    found = replay(traced(layout).workload(), fake_profile())
    assert found.step_time == pytest.approx(simulated, rel=0.01)


@pytest.mark.parametrize("overlap", [{"pipeline_receive": False}, {"pipeline_send": False}])
def test_stacks_that_send_otherwise_take_as_long_as_they_are_estimated_to(
    overlap: dict[str, object],
) -> None:
    layout = ParallelLayout(pp=4, dp=2)
    cast = forecaster(layout, stack=fake_stack(overlap=overlap))
    workload = traced(layout, cast).workload()
    found = play(workload, recorded_seconds).step_time
    assert found == pytest.approx(estimated(layout, cast), rel=1e-9)


def test_hops_round_a_ring_go_to_the_next_rank() -> None:
    trace = traced(ParallelLayout(cp=4, tp=2))
    sends = [node for node in trace.rank(1) if node.kind is NodeKind.SEND]
    assert {node.peer for node in sends} == {3}
    check_workload(trace.workload())


def test_tied_embeddings_are_reduced_between_the_ends_of_the_pipeline() -> None:
    layout = ParallelLayout(pp=4, dp=2)
    cast = forecaster(layout, model=tiny_model(tie_word_embeddings=True))
    trace = traced(layout, cast)
    workload = trace.workload()
    check_workload(workload)
    pairs = [g for (channel, g) in trace.numbers if channel == "tied"]
    assert pairs == [(0, 6), (1, 7)]
    found = play(workload, recorded_seconds).step_time
    assert found == pytest.approx(estimated(layout, cast), rel=1e-9)


def test_a_parameter_server_reduces_and_broadcasts() -> None:
    layout = ParallelLayout.model_validate_json('{"dp": 4, "data_parallel": "parameter-server"}')
    nodes = [node for node, _ in traced(layout).stages[0]]
    found = [node.collective for node in nodes if node.collective is not None]
    assert set(found) == {Collective.REDUCE, Collective.BROADCAST}


def test_more_ranks_than_the_limit_are_refused_with_the_fix() -> None:
    with pytest.raises(InputError, match="--ranks-limit 8"):
        traced(ParallelLayout(dp=8), ranks_limit=4)


def test_dualpipe_is_refused() -> None:
    layout = ParallelLayout(pp=2, vpp=2, schedule=ScheduleName.DUALPIPE, dp=2)
    cast = forecaster(layout, job=tiny_job(global_batch_size=16))
    with pytest.raises(UnsupportedError, match="dualpipe-v"):
        traced(layout, cast)
