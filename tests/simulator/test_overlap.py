"""What hides behind compute: each kind of overlap by hand, and what it can never do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from simulator.cost.blocks import BlockCost, KernelCosts
from simulator.cost.collectives.select import CollectiveCosts
from simulator.hardware.accelerator import Dtype
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import Axis, ParallelLayout
from simulator.parallel.shard import make_shard
from simulator.parallel.work import Block, CommWork
from simulator.results import Category
from simulator.schedule.tasks import STREAMS, StreamKind, WorkKind
from simulator.workload.operator import Gemm
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import KernelClass
from tests.fakes import PEAK, SCALE_UP, fake_overlap, fake_profile, fake_stack, tiny_job
from tests.simulator.steps import Step, forecaster, step_of

MS = 1e-3
PAIR = GroupShape(size=2, per_domain=2)


def gemm(seconds: float) -> Gemm:
    """Return a product that takes `seconds` at 100 TFLOP/s."""
    return Gemm(name="gemm", m=round(seconds * PEAK / 2e6), n=1000, k=1000)


def gather(seconds: float, share: float, count: int = 1) -> CommWork:
    """Return `count` all-gathers of two ranks, half of each over a link of 100 GB/s."""
    return CommWork(
        name="gather",
        collective=Collective.ALL_GATHER,
        payload=2 * seconds * SCALE_UP / count,
        axis=Axis.TENSOR,
        group=PAIR,
        hidden_by=("gemm",),
        hidden_fraction=share,
        count=count,
    )


def priced(stack: Stack, *pieces: Gemm | CommWork) -> BlockCost:
    profile = fake_profile()
    kernels = KernelCosts(profile, stack, Dtype.BF16, CollectiveCosts(profile))
    return kernels.block(Block(name="block", pieces=pieces))


@pytest.mark.parametrize(
    ("comm", "compute", "total"),
    [
        # Four chunks: the first of 1 ms in front, then three of 2 ms each under compute.
        (4 * MS, 8 * MS, 9 * MS),
        # Four chunks of 2 ms, and behind the last its product of 1 ms.
        (8 * MS, 4 * MS, 9 * MS),
    ],
)
def test_a_collective_in_chunks_is_a_pipeline_of_two(
    comm: float, compute: float, total: float
) -> None:
    cost = priced(fake_stack(), gather(comm, 3 / 4, 4), gemm(compute))
    assert cost.seconds == pytest.approx(total)


def test_async_tensor_parallel_cuts_collectives_in_chunks() -> None:
    stack = fake_stack(overlap={"tensor_chunks": 4})
    layout = ParallelLayout(tp=2, sequence_parallel=True)
    shard = make_shard(layout, tiny_job(), stack, 8)
    comm = shard.tensor_comm("qkv.gather", Collective.ALL_GATHER, 64, ("qkv",))
    assert (comm.payload, comm.count, comm.hidden_fraction) == (2 * 32 * 64 / 4, 4, 3 / 4)


def test_what_nothing_runs_beside_is_not_cut() -> None:
    stack = fake_stack(overlap={"tensor_chunks": 4})
    shard = make_shard(ParallelLayout(tp=2), tiny_job(), stack, 8)
    comm = shard.tensor_comm("embedding.reduce", Collective.ALL_REDUCE, 64, ())
    assert (comm.count, comm.hidden_fraction) == (1, 0.0)


def test_chunks_and_a_fitted_share_are_not_both_given() -> None:
    with pytest.raises(ValidationError, match="leave one of the two out"):
        fake_overlap(tensor_chunks=4, tensor_fraction=0.5)


def test_a_hidden_collective_slows_what_it_hides_behind() -> None:
    overlap = {"compute_slowdown": {KernelClass.GEMM: 2.0}, "comm_slowdown": 1.5}
    # 2 ms of collective take 3 ms, in which 10 ms of product advance by 1.5 ms.
    cost = priced(fake_stack(overlap=overlap), gather(2 * MS, 1.0), gemm(10 * MS))
    assert cost.seconds == pytest.approx(11.5 * MS)
    assert cost.by_category[Category.TENSOR_COMM] == pytest.approx(1.5 * MS)


OVERLAPPING = fake_stack(
    overlap={"gradient_reduce": True, "parameter_gather": True}, bucket_parameters=1
)


def starts(step: Step, kind: WorkKind) -> list[tuple[int, float, float]]:
    """Return chunk, start and end of each task of a kind."""
    timing, graph = step.timing(), step.graph
    return [
        (graph.works[work].chunk, timing.start[task], timing.end[task])
        for task, work in enumerate(graph.work)
        if graph.works[work].kind is kind
    ]


def test_each_interleaved_chunk_reduces_after_its_own_last_backward() -> None:
    layout = ParallelLayout(pp=2, vpp=2, dp=2)
    step = step_of(layout, forecaster(layout, stack=OVERLAPPING))
    backward = {chunk: end for chunk, _, end in starts(step, WorkKind.BACKWARD)}
    first: dict[int, float] = {}
    for chunk, start, _ in starts(step, WorkKind.REDUCE):
        first.setdefault(chunk, start)
    # The last chunk of the model ends its backward passes first, and does not wait for the others.
    assert min(first, key=first.__getitem__) == 3
    assert first[3] < backward[0]
    assert first[2] < backward[0]


def test_each_interleaved_chunk_gathers_before_its_own_first_forward() -> None:
    layout = ParallelLayout(pp=2, vpp=2, dp=2, zero_stage=1)
    step = step_of(layout, forecaster(layout, stack=OVERLAPPING))
    gathered = {chunk: end for chunk, _, end in starts(step, WorkKind.GATHER)}
    forward: dict[int, float] = {}
    for chunk, start, _ in starts(step, WorkKind.FORWARD):
        forward.setdefault(chunk, start)
    assert set(gathered) == {0, 1, 2, 3}
    # The first forward pass does not wait for the stage's second chunk.
    assert forward[0] < gathered[2] <= max(end for _, _, end in starts(step, WorkKind.FORWARD))


@given(prefetch=st.integers(0, 3))
def test_units_are_gathered_as_far_ahead_as_the_stack_prefetches(prefetch: int) -> None:
    layout = ParallelLayout(dp=4, zero_stage=3)
    stack = fake_stack(overlap={"prefetch": prefetch})
    step = step_of(layout, forecaster(layout, stack=stack))
    graph, timing = step.graph, step.timing()
    compute = [t for t, lane in enumerate(graph.stream) if lane % STREAMS == StreamKind.COMPUTE]
    gathers = [t for t, w in enumerate(graph.work) if graph.works[w].kind is WorkKind.GATHER]
    passes = [t for t in compute if graph.works[graph.work[t]].kind is not WorkKind.OPTIMIZER]
    for number, task in enumerate(gathers):
        if number > prefetch:
            used = timing.end[passes[number - 1 - prefetch]]
            assert timing.start[task] >= used * (1 - 1e-9)


def test_more_prefetch_is_never_slower() -> None:
    layout = ParallelLayout(dp=4, zero_stage=3)
    times = [
        forecaster(layout, stack=fake_stack(overlap={"prefetch": n})).step_time(layout)
        for n in range(4)
    ]
    assert times == sorted(times, reverse=True)
