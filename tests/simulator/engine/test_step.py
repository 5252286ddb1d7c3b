"""The event run: bytes on every link, and how many events two well-known runs take."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.api import Forecaster
from simulator.cost.plan import LinkKind
from simulator.parallel.layout import DataParallel, ParallelLayout
from simulator.schedule.tasks import WorkKind
from tests.fakes import fake_profile, fake_stack, gpt3_175b, gpt_1t, tiny_job, tiny_model
from tests.simulator.steps import forecaster, step_of

PARAMETERS = tiny_model().parameters
STEPS = 2
"""Micro-batches a replica of a step of `tiny_job` over four replicas."""


def carried(layout: ParallelLayout, stage: int, link: LinkKind) -> float:
    return step_of(layout).play().carried[stage, link]


@pytest.mark.parametrize(
    ("changes", "bytes_a_parameter"),
    [
        # All-reduce: 2 (n-1)/n of 2 bytes.
        ({}, 2 * 2),
        # Reduce-scatter of gradients and all-gather of parameters.
        ({"zero_stage": 1}, 2 + 2),
        # A reduce-scatter a micro-batch, one all-gather.
        ({"zero_stage": 2}, 2 * STEPS + 2),
        # Rajbhandari et al. 2020, section 7: two gathers and a scatter, here a micro-batch.
        ({"zero_stage": 3}, (2 + 2 + 2) * STEPS),
        ({"data_parallel": DataParallel.LOCAL_SGD}, 2 * 2),
    ],
)
def test_data_parallel_ranks_send_their_share_of_every_parameter(
    changes: dict[str, object], bytes_a_parameter: int
) -> None:
    layout = ParallelLayout.model_validate({"dp": 4, **changes})
    share = 3 / 4
    assert carried(layout, 0, LinkKind.SCALE_UP) == pytest.approx(
        share * bytes_a_parameter * PARAMETERS
    )


def test_hsdp_scatters_in_the_shard_and_reduces_between_the_replicas() -> None:
    layout = ParallelLayout(dp=8, zero_stage=1, shard_size=4)
    scatter_and_gather, replicas = 2 * 2 * 3 / 4, 2 * 2 * 1 / 2 / 4
    assert carried(layout, 0, LinkKind.SCALE_UP) == pytest.approx(
        (scatter_and_gather + replicas) * PARAMETERS
    )


def test_stages_send_activations_forward_and_gradients_back() -> None:
    layout = ParallelLayout(pp=3)
    activation = 2 * 32 * 64
    sent = [carried(layout, stage, LinkKind.SCALE_UP) for stage in range(3)]
    assert sent == [8 * activation, 2 * 8 * activation, 8 * activation]


def test_tied_embedding_is_all_reduced_between_the_ends() -> None:
    layout = ParallelLayout(pp=2)
    tied = forecaster(layout, model=tiny_model(tie_word_embeddings=True))
    activations, table = 8 * 2 * 32 * 64, 2 * 1024 * 64
    assert step_of(layout, tied).play().carried[0, LinkKind.SCALE_UP] == activations + table


def test_the_network_is_used_between_domains_only() -> None:
    layout = ParallelLayout(tp=8, dp=2)
    links = step_of(layout, forecaster(layout, model=tiny_model(num_attention_heads=8))).play()
    assert (0, LinkKind.SCALE_UP) not in links.carried
    assert links.carried[0, LinkKind.SCALE_OUT] > 0.0


@given(factor=st.floats(1.0, 10.0))
def test_a_slow_gpu_alone_slows_all_its_compute(factor: float) -> None:
    layout = ParallelLayout()
    cast = forecaster(layout)
    slow = cast.simulate(layout, slowdown=[factor]).step_time
    assert slow == pytest.approx(cast.estimate(layout).step_time * factor)


def test_every_task_starts_after_what_it_waits_for() -> None:
    step = step_of(ParallelLayout(pp=2, dp=4, zero_stage=3))
    run = step.play()
    rows = enumerate(zip(step.graph.first, step.graph.second, strict=True))
    early = [t for t, waits in rows for w in waits if w >= 0 and run.start[t] < run.end[w]]
    assert early == []


def test_two_runs_are_the_same_to_the_last_bit() -> None:
    step = step_of(ParallelLayout(pp=2, dp=2))
    assert step.play() == step.play()


# Two named scenarios. Their event counts are a measure of the work, the same on every machine:
# a change is a change of the engine, for better or worse, and belongs into the change log.

GPT3 = ParallelLayout(tp=8, pp=8, dp=16)
TRILLION = ParallelLayout(tp=8, pp=64, dp=6)
GPT3_EVENTS, GPT3_PLAYED = 91, 14
TRILLION_EVENTS = 819


def gpt3() -> Forecaster:
    """175 B parameters on 1024 accelerators, 96 micro-batches a replica."""
    job = tiny_job(global_batch_size=16 * 96, seq_length=2048)
    return Forecaster(gpt3_175b(), job, fake_stack(), fake_profile(), GPT3.world_size)


def trillion() -> Forecaster:
    """1 T parameters on 3072 accelerators, 512 micro-batches a replica."""
    job = tiny_job(global_batch_size=6 * 512, seq_length=2048)
    return Forecaster(gpt_1t(), job, fake_stack(), fake_profile(), TRILLION.world_size)


def test_gpt3_takes_this_many_events() -> None:
    result = gpt3().simulate(GPT3)
    assert (result.events, result.played_tasks) == (GPT3_EVENTS, GPT3_PLAYED)
    # 96 micro-batches on 8 stages there and back, and what follows the last one.
    assert result.tasks > 96 * (8 + 7) * 2


def test_a_trillion_parameters_take_this_many_events() -> None:
    assert step_of(TRILLION, trillion()).play().events == TRILLION_EVENTS


def test_gpt3_events_grow_neither_with_micro_batches_nor_with_replicas() -> None:
    """All but the last reductions and the transfers that meet them are timed ahead."""
    cast = gpt3()
    wider = ParallelLayout(tp=8, pp=8, dp=32)
    job = tiny_job(global_batch_size=32 * 192, seq_length=2048)
    double = Forecaster(cast.model, job, cast.stack, cast.profile, wider.world_size)
    assert double.simulate(wider).events == GPT3_EVENTS


@pytest.mark.parametrize("layout", [GPT3, ParallelLayout(tp=8, pp=1, dp=128)])
def test_each_distinct_block_is_priced_once(layout: ParallelLayout) -> None:
    cast = gpt3()
    for _ in range(2):
        cast.step_time(layout)
    # Forward, backward and recomputed passes of the embedding, of the one layer, of the head.
    assert cast.costs.blocks_priced == 3 * 3


def test_passes_of_equal_chunks_cost_the_same() -> None:
    step = step_of(GPT3, gpt3())
    middle = {round(seconds, 12) for seconds in step.seconds(WorkKind.FORWARD)[1:-1]}
    assert len(middle) == 1
