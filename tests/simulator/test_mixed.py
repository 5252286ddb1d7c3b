"""Mixed generations: parts that are equal change nothing, slower ones are slow where they stand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.api import Forecaster
from simulator.conditions import SOUND, Conditions
from simulator.diagnosis import find_causes
from simulator.hardware.accelerator import Dtype
from simulator.hardware.parts import Part, mean_peak, mean_price
from simulator.hardware.profile import Price, Profile
from simulator.parallel.layout import ParallelLayout
from simulator.units import GB, GIB, US
from tests.fakes import (
    changed,
    fake_accelerator,
    fake_constants,
    fake_gemm,
    fake_node,
    fake_profile,
    fake_stack,
    tiny_job,
    tiny_model,
)
from tests.simulator.strategies import Setup, setups

PEAK, MEMORY_BANDWIDTH = 100e12, 1e12
EXAMPLES = 30
"""Of layouts: each is forecast four times."""


def like(profile: Profile, name: str, **machine: object) -> Profile:
    """Return a profile under another name, with other numbers of its machine if any."""
    named = changed(profile.machine, name=name, **machine)
    return changed(profile, machine=named, sha256=name)


def mixed(cast: Forecaster, *parts: Part, conditions: Conditions = SOUND) -> Forecaster:
    """Return the forecaster of the same job on a cluster of several parts."""
    return Forecaster(
        cast.model,
        cast.job,
        cast.stack,
        parts[0].profile,
        cast.world_size,
        conditions=replace(conditions, parts=parts),
    )


def two_parts(first: Profile, second: Profile, nodes: int, of: int) -> tuple[Part, Part]:
    """Return `nodes` nodes of the first profile and the rest of `of` of the second."""
    return Part(profile=first, nodes=nodes), Part(profile=second, nodes=of - nodes)


@settings(max_examples=EXAMPLES)
@given(setups(), st.sampled_from((1, 2)), st.data())
def test_two_equal_parts_forecast_what_one_uniform_cluster_does(
    setup: Setup, domain: int, data: st.DataObject
) -> None:
    world = setup.layout.world_size
    if world // domain < 2:
        return
    alone = setup.forecaster(domain)
    first = data.draw(st.integers(1, world // domain - 1))
    halves = two_parts(alone.profile, like(alone.profile, "other"), first, world // domain)
    both = mixed(alone, *halves)
    for name in ("estimate", "simulate"):
        one, other = (getattr(cast, name)(setup.layout) for cast in (alone, both))
        assert other.step_time == pytest.approx(one.step_time, rel=1e-9)
        assert other.breakdown.total == pytest.approx(one.breakdown.total, rel=1e-9)
        assert (other.memory, other.fits, other.mfu) == (
            one.memory,
            one.fits,
            pytest.approx(one.mfu, rel=1e-9),
        )


def slower(times: float) -> Profile:
    """Return the fake machine whose kernels take `times` times as long; its links are the same."""
    gemm = fake_gemm(start=times * US)
    return like(
        fake_profile(
            accelerator=fake_accelerator(
                peak={Dtype.BF16: PEAK / times, Dtype.FP32: PEAK / times},
                memory_bandwidth=MEMORY_BANDWIDTH / times,
            ),
            constants=fake_constants(gemm={Dtype.BF16: gemm, Dtype.FP32: gemm}),
            node=fake_node(accelerators=2, domain_size=2),
        ),
        f"slower-{times:g}",
    )


@pytest.mark.parametrize(
    "layout",
    [
        ParallelLayout(pp=2, dp=4),
        ParallelLayout(pp=4, dp=2, zero_stage=1),
        ParallelLayout(dp=8),
        ParallelLayout(dp=8, zero_stage=3),
        ParallelLayout(pp=2, vpp=2, dp=4),
    ],
    ids=str,
)
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_part_that_computes_slower_is_that_many_slow_ranks(
    layout: ParallelLayout, nodes: int
) -> None:
    model, job = tiny_model(num_hidden_layers=4), tiny_job(global_batch_size=16, seq_length=32)
    stack = fake_stack(kernels={"cpu_launch": 0.0})
    cast = Forecaster(model, job, stack, slower(1.0), layout.world_size)
    by_parts = mixed(cast, *two_parts(slower(1.0), slower(1.5), nodes, of=4))
    slow = dict.fromkeys(range(2 * nodes, 8), 1.5)
    by_ranks = cast.under(replace(SOUND, slow=slow)).simulate(layout)
    assert by_parts.simulate(layout).step_time == pytest.approx(by_ranks.step_time, rel=1e-9)
    assert by_parts.simulate(layout).step_time > cast.simulate(layout).step_time


def test_a_slow_rank_of_a_part_is_slow_on_its_own_machine() -> None:
    layout, job = ParallelLayout(dp=4), tiny_job(global_batch_size=16, seq_length=32)
    stack = fake_stack(kernels={"cpu_launch": 0.0})
    cast = Forecaster(tiny_model(num_hidden_layers=4), job, stack, slower(1.0), 4)
    parts = two_parts(slower(1.0), slower(2.0), 1, of=2)
    found = mixed(cast, *parts, conditions=replace(SOUND, slow={3: 1.5})).simulate(layout)
    alone = cast.under(replace(SOUND, slow={3: 3.0})).simulate(layout)
    assert found.step_time == pytest.approx(alone.step_time, rel=1e-9)
    assert found.played == 3


def test_experts_across_parts_run_in_lockstep_with_the_slower() -> None:
    """One block of replicas stands on both machines, so that no replica is faster."""
    model = tiny_model(
        num_hidden_layers=2,
        moe={"num_experts": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 32},
    )
    job, layout = tiny_job(global_batch_size=8, seq_length=32), ParallelLayout(dp=4, ep=4)
    cast = Forecaster(model, job, fake_stack(), slower(1.0), 4)
    uniform = Forecaster(model, job, fake_stack(), slower(2.0), 4)
    found = mixed(cast, *two_parts(slower(1.0), slower(2.0), 1, of=2))
    assert found.simulate(layout).step_time == pytest.approx(
        uniform.simulate(layout).step_time, rel=1e-9
    )


def nic(profile: Profile, name: str, bandwidth: float) -> Profile:
    """Return a profile whose NICs have another bandwidth."""
    node = profile.node
    assert node.nic is not None
    card = changed(node.nic, bandwidth=bandwidth)
    return like(profile, name, node=changed(node, nic=card))


@pytest.mark.parametrize("layout", [ParallelLayout(dp=4), ParallelLayout(pp=2, dp=2)], ids=str)
def test_collectives_between_parts_are_at_the_slower_nic(layout: ParallelLayout) -> None:
    job, model = tiny_job(global_batch_size=16, seq_length=32), tiny_model(num_hidden_layers=4)
    fast = nic(slower(1.0), "fast", 40 * GB)
    slow = nic(slower(1.0), "slow", 10 * GB)
    cast = Forecaster(model, job, fake_stack(), fast, 4)
    uniform = Forecaster(model, job, fake_stack(), slow, 4)
    both = mixed(cast, *two_parts(fast, slow, 1, of=2))
    expected = uniform.simulate(layout).step_time
    assert both.simulate(layout).step_time == pytest.approx(expected, rel=1e-9)
    assert both.estimate(layout).step_time == pytest.approx(expected, rel=1e-9)
    assert cast.simulate(layout).step_time < expected


def test_each_stage_is_checked_against_the_memory_it_stands_on() -> None:
    layout = ParallelLayout(pp=2)
    job, model = tiny_job(global_batch_size=4, seq_length=32), tiny_model(num_hidden_layers=4)
    cast = Forecaster(model, job, fake_stack(), slower(1.0), 2)
    need = [use.reserved for use in cast.memory(layout)]
    small = [
        like(
            fake_profile(accelerator=fake_accelerator(memory=room)),
            f"room-{room}",
            node=fake_node(accelerators=1, domain_size=1),
        )
        for room in (min(need) - 1.0, min(need) + 1.0, 80 * GIB)
    ]
    large = small[-1]
    fits = [mixed(cast, *two_parts(large, each, 1, of=2)).estimate(layout) for each in small[:2]]
    fullest_first = need[0] >= need[1]
    assert [result.fits for result in fits] == [False, fullest_first]
    assert [r.stage_capacity for r in fits] == [(80 * GIB, m.accelerator.memory) for m in small[:2]]


def test_utilisation_is_of_the_sum_of_the_peaks_and_prices_add_up() -> None:
    def priced(name: str, times: float, rate: float | None, currency: str = "USD") -> Profile:
        price = Price(per_accelerator_hour=rate, currency=currency)
        return like(slower(times), name, price=price)

    parts = two_parts(priced("a", 1.0, 3.0), priced("b", 4.0, 1.0), 1, of=4)
    assert mean_peak(parts, Dtype.BF16) == pytest.approx((2 * PEAK + 6 * PEAK / 4) / 8)
    assert mean_price(parts).per_accelerator_hour == (2 * 3.0 + 6 * 1.0) / 8
    for other in (priced("b", 4.0, None), priced("b", 4.0, 1.0, "EUR")):
        assert mean_price(two_parts(parts[0].profile, other, 1, 4)).per_accelerator_hour is None


def test_what_the_slower_part_costs_is_the_step_of_a_cluster_of_the_faster_one() -> None:
    layout, job = ParallelLayout(dp=4), tiny_job(global_batch_size=16, seq_length=32)
    cast = Forecaster(tiny_model(num_hidden_layers=4), job, fake_stack(), slower(1.0), 4)
    both = mixed(cast, *two_parts(slower(1.0), slower(2.0), 1, of=2))
    result = both.simulate(layout)
    (cause,) = find_causes(both, layout, result)
    assert cause.what == "slower-2, not as fast as slower-1"
    gained = result.step_time - cast.simulate(layout).step_time
    assert cause.seconds == pytest.approx(gained, rel=1e-9)
