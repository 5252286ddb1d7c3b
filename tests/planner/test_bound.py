"""The lower bound: never above the estimate, and equal to it where nothing is in the way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bound import quick_bound, step_time_bound
from planner.passes import Passes
from simulator.parallel.layout import ParallelLayout, ScheduleName
from tests.fakes import fake_stack, tiny_model
from tests.planner.scenarios import forecaster, gpt, scenario
from tests.simulator.strategies import Setup, setups


def passes(
    name: ScheduleName, pp: int, vpp: int = 1, *, send: float = 0.0, blocking: bool = False
) -> Passes:
    """Return passes of 1 s forward and 2 s backward at every place."""
    return Passes(
        schedule=name,
        pp=pp,
        vpp=vpp,
        forward=(1.0,) * (pp * vpp),
        backward=(2.0,) * (pp * vpp),
        send=send,
        blocking=blocking,
    )


@given(setup=setups(), domain_size=st.sampled_from((1, 4, 8)), latency=st.sampled_from((0, 1e-3)))
def test_bound_is_never_above_the_estimate(setup: Setup, domain_size: int, latency: float) -> None:
    cast = setup.forecaster(domain_size, latency)
    assert step_time_bound(cast, setup.layout) <= cast.step_time(setup.layout)


@given(setup=setups(), domain_size=st.sampled_from((1, 4, 8)))
def test_quick_bound_is_never_above_the_close_one(setup: Setup, domain_size: int) -> None:
    cast = setup.forecaster(domain_size)
    close = step_time_bound(cast, setup.layout)
    assert quick_bound(cast, setup.layout) <= close * (1 + 1e-9)


def test_quick_bound_is_what_the_last_of_like_stages_makes_certain() -> None:
    cast = forecaster(scenario(gpt(16, tie_word_embeddings=False)))
    layout = ParallelLayout(tp=2, pp=4, zero_stage=0)
    assert quick_bound(cast, layout) > 0.95 * step_time_bound(cast, layout)


def test_stages_between_the_ends_do_not_wait_for_the_tied_embedding() -> None:
    overlap = {"gradient_reduce": False, "parameter_gather": False, "pipeline_send": False}
    layout = ParallelLayout(
        pp=3, cp=2, schedule=ScheduleName.GPIPE, zero_stage=2, layers_per_stage=(0, 2, 0)
    )
    setup = Setup(
        model=tiny_model(num_hidden_layers=2, tie_word_embeddings=True),
        stack=fake_stack(overlap=overlap, bucket_parameters=1),
        layout=layout,
        micro_batches=2,
    )
    cast = setup.forecaster(domain_size=1, latency=0.0)
    assert step_time_bound(cast, layout) <= cast.step_time(layout)


@given(setup=setups())
def test_bound_is_positive(setup: Setup) -> None:
    assert step_time_bound(setup.forecaster(8), setup.layout) > 0


@pytest.mark.parametrize("name", [ScheduleName.GPIPE, ScheduleName.ONE_F_ONE_B])
def test_like_stages_take_all_micro_batches_and_the_fill(name: ScheduleName) -> None:
    assert passes(name, 4).least(8, range(4)) == (8 + 3) * 3.0


def test_interleaving_shrinks_the_fill_by_vpp() -> None:
    assert passes(ScheduleName.INTERLEAVED, 4, 2).least(8, range(4)) == 8 * 2 * 3.0 + 3 * 3.0


def test_first_and_last_micro_batch_wait_for_every_transfer() -> None:
    found = passes(ScheduleName.GPIPE, 4, send=0.5).least(8, range(4))
    assert found == (8 + 3) * 3.0 + 2 * 3 * 0.5


def test_transfers_that_block_a_stage_count_for_every_micro_batch() -> None:
    found = passes(ScheduleName.ONE_F_ONE_B, 3, send=0.5, blocking=True).stage(1, 6)
    # The first micro-batch is back at stage 1 after 1.5 + 1.5 + 1 + 2.5 s; 4 pairs of 1.5 + 2.5 s;
    # the last one goes on to stage 2 and back through all: 1 + 2.5 + 2.5 + 2 s.
    assert found == 6.5 + 16.0 + 8.0


def test_round_trips_of_1f1b_show_transfers_that_do_not_hide() -> None:
    # Four trips of 2 micro-batches, each 2 x 3 s and two transfers, then the drain of the last.
    found = passes(ScheduleName.ONE_F_ONE_B, 2, send=0.5)
    assert found.least(8, range(2)) == 8 * 3.0 + 3.0 + 8 / 2 * 2 * 0.5


@pytest.mark.parametrize("vpp", [1, 2])
def test_bound_equals_the_estimate_of_a_plain_pipeline(vpp: int) -> None:
    cast = forecaster(scenario(gpt(16, tie_word_embeddings=False)))
    layout = ParallelLayout(tp=2, pp=4, vpp=vpp)
    assert step_time_bound(cast, layout) == pytest.approx(cast.step_time(layout), rel=0.02)
