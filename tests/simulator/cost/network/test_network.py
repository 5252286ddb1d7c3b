"""Collectives on links: what the fullest one allows, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from simulator.api import Forecaster
from simulator.conditions import Conditions
from simulator.cost.collectives.select import plan_collective
from simulator.cost.network.groups import Together
from simulator.cost.network.network import Network
from simulator.parallel.domains import group_shape
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout
from simulator.topology.network_file import BackgroundTraffic
from tests.fakes import NIC, fake_node, fake_profile
from tests.simulator.cost.network.networks import FLAT, network_on, two_racks
from tests.simulator.steps import forecaster
from tests.simulator.strategies import Setup, setups

ONE_A_NODE = fake_profile(node=fake_node(domain_size=1, accelerators=1))
FOUR = ParallelLayout(dp=4)
ALL = Together(stage=0, size=4, stride=1)


def rate_of_ring(network: Network) -> float:
    """Return the bytes/s of a ring all-reduce over four nodes."""
    group = group_shape(4, 1, network.domains)
    plan = plan_collective(Collective.ALL_REDUCE, 1e9, group, ONE_A_NODE, algorithm="ring")
    (phase,) = network.limited(plan, ALL, FOUR).phases
    return phase.rate


def test_a_ring_in_rank_order_crosses_an_uplink_once_each_way() -> None:
    assert rate_of_ring(network_on(ONE_A_NODE, two_racks(2.0), 4)) == pytest.approx(NIC)


def test_a_ring_that_changes_racks_at_each_step_shares_uplinks_between_two_flows() -> None:
    crossed = network_on(ONE_A_NODE, two_racks(2.0), 4, places=(0, 2, 1, 3))
    assert rate_of_ring(crossed) == pytest.approx(NIC / 2)


def test_a_slow_link_slows_the_whole_ring() -> None:
    sound = network_on(ONE_A_NODE, FLAT, 4)
    slow = network_on(ONE_A_NODE, FLAT, 4, changed={sound.topology.first_up + 2: NIC / 5})
    assert rate_of_ring(slow) == pytest.approx(NIC / 5)


def test_a_transfer_between_stages_is_as_slow_as_all_pairs_on_the_uplink_make_it() -> None:
    """By hand: stages 0 and 1 have two ranks each, and both send over one uplink of one NIC."""
    network = network_on(ONE_A_NODE, two_racks(2.0), 4)
    layout = ParallelLayout(dp=2, pp=2)
    plan = plan_collective(
        Collective.SEND_RECV, 1e9, group_shape(2, 2, network.domains), ONE_A_NODE
    )
    pairs = Together(stage=0, other=1, size=2, stride=0)
    (phase,) = network.limited(plan, pairs, layout).phases
    assert phase.rate == pytest.approx(NIC / 2)


def test_groups_inside_passes_are_slowed_by_all_such_groups_of_the_cluster() -> None:
    """By hand: pairs (0, 2) and (1, 3) of a cp of two cross the uplink at once."""
    network = network_on(ONE_A_NODE, two_racks(2.0), 4, places=(0, 2, 1, 3))
    group = group_shape(2, 1, network.domains)
    plan = plan_collective(Collective.ALL_GATHER, 1e9, group, ONE_A_NODE, algorithm="ring")
    (phase,) = network.in_passes(plan).phases
    assert phase.rate == pytest.approx(NIC / 2)


def test_ranks_that_are_dealt_round_the_nodes_share_no_domain() -> None:
    pairs = fake_profile(node=fake_node(domain_size=2, accelerators=2))
    dealt = network_on(pairs, FLAT, 2, places=(0, 2, 1, 3))
    assert (group_shape(2, 1, dealt.domains), group_shape(2, 2, dealt.domains)) == (
        group_shape(2, 2, 2),
        group_shape(2, 1, 2),
    )


@settings(max_examples=min(50, settings.default.max_examples))
@given(setup=setups(), oversubscription=st.sampled_from((1.0, 2.0, 8.0)))
def test_no_network_makes_a_step_faster_and_one_that_blocks_nothing_leaves_it_as_it_is(
    setup: Setup, oversubscription: float
) -> None:
    assume(setup.layout.world_size % 2 == 0)
    plain = setup.forecaster(1)
    fabric = two_racks(oversubscription, joins=setup.layout.world_size // 2)
    network = network_on(plain.profile, fabric, setup.layout.world_size)
    cast = plain.under(Conditions(network=network))
    before, after = (each.estimate(setup.layout).step_time for each in (plain, cast))
    assert after >= before * (1 - 1e-9)
    assert oversubscription > 1 or after == pytest.approx(before, rel=1e-9)
    # What a NIC receives from two stages at once is only seen on a network.
    before, after = (each.simulate(setup.layout).step_time for each in (plain, cast))
    assert after >= before * (1 - 1e-9)


@settings(max_examples=min(50, settings.default.max_examples))
@given(setup=setups())
def test_the_engine_is_never_faster_than_the_estimate_on_the_same_network(setup: Setup) -> None:
    assume(setup.layout.world_size % 2 == 0)
    plain = setup.forecaster(1)
    places = np.random.default_rng(1).permutation(setup.layout.world_size)
    fabric = two_racks(4.0, joins=setup.layout.world_size // 2)
    network = network_on(plain.profile, fabric, setup.layout.world_size, places=places.tolist())
    cast = plain.under(Conditions(network=network))
    estimate = cast.estimate(setup.layout).step_time
    assert cast.simulate(setup.layout).step_time >= estimate * (1 - 1e-9)


def test_traffic_of_others_takes_its_fair_share_of_a_link() -> None:
    """By hand: the ring and a flow of another job share the cable of node 0, half each."""
    plain = forecaster(ParallelLayout(dp=2), profile=ONE_A_NODE)
    network = network_on(ONE_A_NODE, FLAT, 2)
    quiet, busy = (
        cast.simulate(ParallelLayout(dp=2))
        for cast in (
            plain.under(Conditions(network=network)),
            plain.under(Conditions(network=network, background=(from_node_0_to_1(),))),
        )
    )
    ring = _ring_seconds(plain)
    assert ring > 0
    assert busy.step_time == pytest.approx(quiet.step_time + ring)


def from_node_0_to_1() -> BackgroundTraffic:
    return BackgroundTraffic(source=(0,), target=(1,), bandwidth=10 * NIC)


def _ring_seconds(cast: Forecaster) -> float:
    result = cast.estimate(ParallelLayout(dp=2))
    return sum(value for kind, value in result.breakdown.seconds.items() if kind == "data_comm")
