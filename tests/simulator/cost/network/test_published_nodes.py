"""On the fabrics of published measurements the network layer adds nothing to a NIC's plain share.

So errors on these measurements are the same whether links are looked at or not.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.collectives.select import plan_collective
from simulator.cost.network.groups import Together
from simulator.cost.network.network import Network
from simulator.hardware.profile import Profile, load_profile
from simulator.parallel.domains import group_shape
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout
from simulator.topology.build import topology_of_profile
from simulator.topology.changes import with_links
from simulator.topology.routing import Router
from simulator.units import GIB, MIB

MEASURED = [*(("dgx-h100", nodes) for nodes in (2, 4, 8, 16, 32)), ("gh200-node", 2)]
"""Machine and nodes: the H100 logs and figure, rail-optimised, and a log of four NICs a node."""
COLLECTIVES = (
    Collective.ALL_REDUCE,
    Collective.ALL_GATHER,
    Collective.REDUCE_SCATTER,
    Collective.ALL_TO_ALL,
)


@cache
def machine(name: str) -> Profile:
    return load_profile(name)


@cache
def network_of(name: str, nodes: int, slower: float = 1.0) -> Network:
    """Return the machine's own fabric; `slower` divides the rate of the first cable of it."""
    profile = machine(name)
    topology = topology_of_profile(profile, nodes)
    if slower > 1:
        first = topology.first_up
        topology = with_links(topology, {first: float(topology.capacity[first]) / slower})
    return Network(
        topology=topology,
        routes=Router(topology),
        places=np.arange(topology.size),
        domain_size=profile.node.scale_up.domain_size,
        nominal=profile.node.scale_up.bandwidth,
    )


def both_ways(
    name: str, nodes: int, collective: Collective, payload: float, slower: float = 1.0
) -> tuple[float, float]:
    """Return the seconds of a collective of all ranks by NIC shares, and by links."""
    profile, network = machine(name), network_of(name, nodes, slower)
    ranks = nodes * profile.node.accelerators
    plan = plan_collective(collective, payload, group_shape(ranks, 1, network.domains), profile)
    limited = network.limited(
        plan, Together(stage=0, size=ranks, stride=1), ParallelLayout(dp=ranks)
    )
    return plan.seconds, limited.seconds


@pytest.mark.parametrize(("name", "nodes"), MEASURED)
@given(collective=st.sampled_from(COLLECTIVES), payload=st.floats(MIB, 16 * GIB))
def test_links_of_a_fabric_that_blocks_nothing_agree_with_the_share_of_the_nics(
    name: str, nodes: int, collective: Collective, payload: float
) -> None:
    plain, routed = both_ways(name, nodes, collective, payload)
    assert routed == pytest.approx(plain, rel=1e-9)


def test_one_slow_cable_is_seen() -> None:
    plain, routed = both_ways("dgx-h100", 4, Collective.ALL_REDUCE, 16 * GIB, slower=4.0)
    assert routed > 2 * plain
