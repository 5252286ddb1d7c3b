"""Memory of a rank: ZeRO's formulas, activations in flight, and what else is alive at the peak."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.parallel.layout import (
    ContextExchange,
    ParallelLayout,
    Recompute,
    ScheduleName,
)
from simulator.results import MemoryUse
from simulator.units import GIB
from simulator.workload.job import Optimizer
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Memory, Stack
from simulator.workload.stack_choices import AttentionKernel
from tests.fakes import fake_stack, tiny_job, tiny_model
from tests.simulator.steps import forecaster

RAJBHANDARI = fake_stack(numerics={"master_bytes": 0.0, "state_bytes": 6.0})
"""2 bytes of parameter, 2 of gradient, K = 12 of optimizer states."""
SBH = 32 * 64
LAYER = SBH * (34 + 5 * 4 * 32 / 64)
"""Korthikanti's bytes of a layer of the tiny GPT, unfused and with dropout."""


def memory_of(
    layout: ParallelLayout,
    *,
    stack: Stack | None = None,
    model: ModelSpec | None = None,
    batch: int = 48,
) -> tuple[MemoryUse, ...]:
    job = tiny_job(global_batch_size=batch)
    return forecaster(layout, stack=stack, model=model, job=job).memory(layout)


def states_of(use: MemoryUse) -> float:
    return use.weights + use.gradients + use.optimizer


@pytest.mark.parametrize("zero_stage", [0, 1, 2, 3])
@given(dp=st.sampled_from((2, 3, 4, 8)), pp=st.integers(1, 2))
def test_states_are_divided_as_in_the_zero_paper(zero_stage: int, dp: int, pp: int) -> None:
    # Rajbhandari et al. 2020, figure 1: 2 + 2 + K, K over N, 2 + K over N, all over N.
    layout = ParallelLayout(dp=dp, pp=pp, zero_stage=zero_stage)
    program = forecaster(layout).program(layout)
    bytes_each = [16, 4 + 12 / dp, 2 + 14 / dp, 16 / dp][zero_stage]
    assert [states_of(use) for use in memory_of(layout, stack=RAJBHANDARI)] == pytest.approx(
        [program.stage_parameters(stage) * bytes_each for stage in range(pp)]
    )


def test_a_sharded_master_copy_is_the_only_copy_that_zero_3_keeps() -> None:
    layout = ParallelLayout(dp=4, zero_stage=3)
    (use,) = memory_of(layout, stack=fake_stack())
    assert (use.weights, states_of(use)) == (0.0, tiny_model().parameters * 14 / 4)


def test_a_stack_may_keep_sharded_parameters_beside_their_masters() -> None:
    layout = ParallelLayout(dp=4, zero_stage=3)
    (use,) = memory_of(layout, stack=fake_stack(numerics={"keeps_sharded": True}))
    parameters = tiny_model().parameters / 4
    assert (use.weights, states_of(use)) == (2 * parameters, 16 * parameters)


def test_gathered_keys_are_alive_while_a_layer_runs_backward() -> None:
    gathered = ParallelLayout(cp=2, cp_comm_type=ContextExchange.ALL_GATHER)
    (use,), (ring,) = memory_of(gathered), memory_of(ParallelLayout(cp=2))
    # All keys and values of 32 tokens and their gradients; of a ring two sets of 16 tokens'.
    assert (use.transient, ring.transient) == (4 * 2 * SBH, 2 * 4 * 2 * SBH / 2)


def test_zero_3_holds_the_largest_segments_whole_while_they_compute() -> None:
    layout = ParallelLayout(dp=4, zero_stage=3)
    (plain,) = memory_of(ParallelLayout(dp=4))
    (use,) = memory_of(layout)
    largest = max(s.parameters for s in forecaster(layout).program(layout).chunks[0].segments)
    # The one that computes and the one prefetched, 2 bytes each; one whole gradient, 2 bytes.
    assert use.transient - plain.transient == largest * (2 * 2 + 2)


def test_hsdp_divides_by_the_shard_only() -> None:
    layouts = [
        ParallelLayout(dp=4, zero_stage=3),
        ParallelLayout(dp=8, zero_stage=3, shard_size=4),
    ]
    assert len({states_of(memory_of(layout)[0]) for layout in layouts}) == 1


def test_context_ranks_shard_states_too() -> None:
    layouts = [ParallelLayout(dp=4, zero_stage=1), ParallelLayout(dp=2, cp=2, zero_stage=1)]
    assert len({states_of(memory_of(layout)[0]) for layout in layouts}) == 1


@pytest.mark.parametrize(
    ("optimizer", "bytes_each"),
    [(Optimizer.ADAM, 16), (Optimizer.SGD_MOMENTUM, 12), (Optimizer.SGD, 8)],
)
def test_optimizers_keep_their_own_number_of_states(optimizer: Optimizer, bytes_each: int) -> None:
    layout = ParallelLayout()
    cast = forecaster(layout, job=tiny_job(optimizer=optimizer))
    (use,) = cast.memory(layout)
    assert states_of(use) == tiny_model().parameters * bytes_each


@pytest.mark.parametrize(
    ("schedule", "vpp", "chunks"),
    [
        (ScheduleName.GPIPE, 1, [48, 48, 48, 48]),
        (ScheduleName.ONE_F_ONE_B, 1, [4, 3, 2, 1]),
        # 2 (pp - s - 1) + (vpp - 1) pp + 1 chunks of one layer.
        (ScheduleName.INTERLEAVED, 2, [11, 9, 7, 5]),
    ],
)
def test_layers_in_flight_are_those_of_the_schedule(
    schedule: ScheduleName, vpp: int, chunks: list[int]
) -> None:
    model = tiny_model(num_hidden_layers=4 * vpp)
    stack = fake_stack(kernels={"attention": AttentionKernel.UNFUSED, "dropout": True})
    layout = ParallelLayout(pp=4, vpp=vpp, schedule=schedule)
    middle = memory_of(layout, stack=stack, model=model)[1:3]
    assert [use.activations for use in middle] == [n * LAYER for n in chunks[1:3]]


def test_first_stage_adds_the_embedding_and_last_stage_the_head() -> None:
    stack = fake_stack(kernels={"attention": AttentionKernel.UNFUSED, "dropout": True})
    first, last = memory_of(ParallelLayout(pp=2), stack=stack)
    mask, norm_and_input = SBH, 2 * SBH + 2 * SBH
    assert (first.activations, last.activations) == (
        2 * (2 * LAYER + mask),
        2 * LAYER + norm_and_input,
    )


def test_logits_stand_on_the_last_stage() -> None:
    assert [use.logits for use in memory_of(ParallelLayout(pp=2))] == [0.0, 4.0 * 32 * 1024]


def test_full_recompute_adds_one_layer_at_a_time() -> None:
    stack = fake_stack(kernels={"attention": AttentionKernel.UNFUSED, "dropout": True})
    layout = ParallelLayout(pp=4, recompute=Recompute.FULL)
    use = memory_of(layout, stack=stack)[1]
    # The layer's input, 2 s b h, is one of the three that are kept.
    assert (use.activations, use.transient) == (3 * 2 * SBH, LAYER - 2 * SBH)


def test_reserved_is_allocated_times_fragmentation_and_the_context() -> None:
    stack = fake_stack(memory=Memory(context=GIB, fragmentation=1.25))
    (use,) = memory_of(ParallelLayout(), stack=stack)
    assert use.reserved == pytest.approx(1.25 * use.allocated + GIB)


@given(
    tp=st.sampled_from((1, 2, 4)),
    dp=st.sampled_from((1, 2, 4)),
    pp=st.sampled_from((1, 2, 4)),
    zero_stage=st.integers(0, 3),
)
def test_no_part_of_memory_is_negative(tp: int, dp: int, pp: int, zero_stage: int) -> None:
    layout = ParallelLayout(tp=tp, dp=dp, pp=pp, zero_stage=zero_stage)
    parts = [
        getattr(use, part)
        for use in memory_of(layout)
        for part in ("weights", "gradients", "optimizer", "activations", "transient", "logits")
    ]
    assert min(parts) >= 0


@given(dp=st.sampled_from((1, 2, 4, 8)), pp=st.sampled_from((1, 2, 4)))
def test_a_higher_zero_stage_never_needs_more_states(dp: int, pp: int) -> None:
    held = [
        sum(map(states_of, memory_of(ParallelLayout(dp=dp, pp=pp, zero_stage=stage))))
        for stage in range(4)
    ]
    assert held == sorted(held, reverse=True)
