"""The rates of collectives on topologies, by hand: the fullest link decides.

Units are four accelerators with a NIC of 10 GB/s each, or chips on a torus with links of 10 GB/s.
Rates are of wire bytes: those that the busiest rank sends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulator.cost.collectives.pattern import Members
from simulator.cost.collectives.registry import traffic_of
from simulator.cost.collectives.select import plan_collective
from simulator.cost.plan import LinkKind
from simulator.parallel.groups import Collective, GroupShape
from simulator.topology.build import build_topology
from simulator.topology.context import Context
from simulator.topology.routing import Router
from simulator.topology.topology_file import parse_topology
from simulator.units import GB
from tests.simulator.cost.collectives.machines import machine

WIDTH = 4
CONTEXT = Context(
    accelerators=WIDTH,
    domain=WIDTH,
    scale_up_bandwidth=400 * GB,
    scale_up_latency=0.0,
    torus_axes=2,
    nics=WIDTH,
    nic_bandwidth=10 * GB,
    nic_efficiency=1.0,
    nic_latency=0.0,
    host_bandwidth=60 * GB,
)
FLAT = {"kind": "flat"}
# Two leaves of 80 GB/s below and 10 GB/s above.
THIN = {"kind": "fat-tree", "tiers": [{"joins": 2, "oversubscription": 8}, {}]}
# Eight leaves, one for each rail of two units: 20 GB/s below, 2.5 GB/s above.
RAILS = {
    "kind": "rail-optimised",
    "tiers": [{"joins": 2, "uplinks": 1, "bandwidth": "2.5 GB/s"}, {}],
}
SITES = {
    "kind": "wan",
    "site": [
        {"name": name, "units": 2, "fabric": {"kind": "flat"}, "gateway": ["switch"]}
        for name in ("east", "west")
    ],
    "link": [{"ends": ["east", "west"], "bandwidth": "10 GB/s", "latency": "1 ms"}],
}
RING_OF_CHIPS = {"kind": "torus", "shape": [4], "bandwidth": "10 GB/s"}
SQUARE_OF_CHIPS = {"kind": "torus", "shape": [4, 4], "bandwidth": "10 GB/s"}
# Three groups of two routers with a chip each; all links between routers have 4 GB/s.
DRAGONFLY = {
    "kind": "dragonfly",
    "routers": 2,
    "ports": 1,
    "global_links": 1,
    "groups": 3,
    "local_bandwidth": "4 GB/s",
    "global_bandwidth": "4 GB/s",
}
NODES = {"kind": "nvswitch"}
CHIP = {"kind": "bare", "accelerators": 1, "bandwidth": "40 GB/s"}
ALL_REDUCE, ALL_GATHER = Collective.ALL_REDUCE, Collective.ALL_GATHER
REDUCE_SCATTER, ALL_TO_ALL = Collective.REDUCE_SCATTER, Collective.ALL_TO_ALL
BROADCAST, SEND_RECV = Collective.BROADCAST, Collective.SEND_RECV


def rates(
    collective: Collective,
    algorithm: str,
    router: Router,
    places: list[int] | None = None,
) -> list[float]:
    """Return the bytes/s at which the fullest link lets each phase across domains advance."""
    topology = router.topology
    group = GroupShape(size=topology.size, per_domain=topology.width)
    ranks = np.arange(topology.size) if places is None else np.array(places)
    members = Members(accelerators=ranks[None], domain=np.arange(topology.size) // topology.width)
    plan = plan_collective(collective, 1e9, group, machine(), algorithm=algorithm)
    found = []
    for number, phase in enumerate(plan.phases):
        if phase.link is LinkKind.SCALE_OUT:
            sent = traffic_of(plan, number, members)
            loads = router.loads(sent.source, sent.target, sent.weight)
            used = loads > 0
            found.append(float((topology.capacity[used] / loads[used]).min()))
    return found


def router(
    fabric: dict[str, Any],
    unit: dict[str, Any] | None = None,
    units: int = 4,
    *,
    relay: bool = True,
) -> Router:
    table = {"title": "by hand", "unit": unit or NODES, "fabric": fabric}
    topology = build_topology(parse_topology(table, "net.toml"), CONTEXT, units)
    return Router(topology, relay=relay)


@pytest.mark.parametrize(
    ("collective", "algorithm"),
    [
        (ALL_GATHER, "ring"),
        (ALL_REDUCE, "tree"),
        (ALL_REDUCE, "hierarchical"),
        (ALL_REDUCE, "sharp"),
        (ALL_REDUCE, "recursive_doubling"),
        (ALL_REDUCE, "recursive_halving"),
        (ALL_TO_ALL, "pairwise"),
        (ALL_TO_ALL, "two_step"),
        (BROADCAST, "chain"),
        (BROADCAST, "binomial"),
        (SEND_RECV, "direct"),
    ],
)
def test_on_a_switch_that_is_never_full_each_nic_is_filled(
    collective: Collective, algorithm: str
) -> None:
    assert rates(collective, algorithm, router(FLAT)) == pytest.approx([10 * GB])


BEHIND_10_GB = [
    # Of four rings one edge each leaves a leaf.
    (ALL_GATHER, "ring", [2.5]),
    (ALL_REDUCE, "ring_bidirectional", [2.5]),
    (ALL_REDUCE, "hierarchical", [2.5]),
    (ALL_REDUCE, "sharp", [2.5]),
    (BROADCAST, "chain", [2.5]),
    # Two edges of each tree cross, each with s/2 of the 2 s / 4 of a rank: 4 x 1.
    (ALL_REDUCE, "tree", [2.5]),
    # 8 ranks send to 8 ranks 1/12 each; in two steps to 2 slots 1/3 each.
    (ALL_TO_ALL, "pairwise", [1.875]),
    (ALL_GATHER, "all_pairs", [1.875]),
    (ALL_TO_ALL, "two_step", [1.875]),
    # The second round of two crosses: half of the bytes of 8 ranks; two thirds; one third.
    (ALL_REDUCE, "recursive_doubling", [2.5]),
    (ALL_GATHER, "recursive_doubling", [1.875]),
    (REDUCE_SCATTER, "recursive_halving", [1.875]),
    (ALL_REDUCE, "recursive_halving", [3.75]),
    # One rank sends to one; twice in a row by one NIC; 8 ranks send a part to a full NIC.
    (SEND_RECV, "direct", [10.0]),
    (BROADCAST, "binomial", [10.0]),
    (ALL_REDUCE, "parameter_server", [10.0, 10.0]),
]


@pytest.mark.parametrize("fabric", [THIN, SITES], ids=["thin", "sites"])
@pytest.mark.parametrize(("collective", "algorithm", "expected"), BEHIND_10_GB)
def test_behind_a_thin_link_what_crosses_it_decides(
    fabric: dict[str, Any], collective: Collective, algorithm: str, expected: list[float]
) -> None:
    found = rates(collective, algorithm, router(fabric))
    assert found == pytest.approx([rate * GB for rate in expected])


@pytest.mark.parametrize(
    ("collective", "algorithm", "relay", "expected"),
    [
        # A ring of each rail crosses its own 2.5 GB/s.
        (ALL_GATHER, "ring", True, 2.5),
        (ALL_GATHER, "ring", False, 2.5),
        # A rail carries what 8 ranks send to its 2 ranks of the other pod.
        (ALL_TO_ALL, "pairwise", True, 2.5 / (16 / 12)),
        # 2 ranks of a rail send to 8 of the other pod, and to 3 other rails of their pod.
        (ALL_TO_ALL, "pairwise", False, 2.5 / (22 / 12)),
        # Slot by slot nothing ever changes rails.
        (ALL_TO_ALL, "two_step", False, 2.5 / (2 * 2 / 3)),
    ],
)
def test_on_rails_messages_that_change_them_load_the_spines(
    collective: Collective, algorithm: str, relay: bool, expected: float
) -> None:
    found = rates(collective, algorithm, router(RAILS, relay=relay))
    assert found == pytest.approx([expected * GB])


def test_ranks_dealt_in_turn_to_leaves_send_no_ring_to_and_fro_in_their_node() -> None:
    # Nodes 0, 2, 1, 3 of leaves 0, 1, 0, 1: all four hops cross, two each way.
    order = [node * WIDTH + slot for slot in range(WIDTH) for node in (0, 2, 1, 3)]
    assert rates(ALL_GATHER, "ring", router(THIN), order) == pytest.approx([1.25 * GB])


@pytest.mark.parametrize(
    ("collective", "algorithm", "expected"),
    [
        (ALL_GATHER, "ring", [10]),
        # Half each way round.
        (ALL_GATHER, "ring_bidirectional", [20]),
        # 1/3 one way, 1/3 the other, and 1/3 two links far by both: 4/3 over 2 links.
        (ALL_TO_ALL, "pairwise", [15]),
    ],
)
def test_on_a_ring_of_chips(collective: Collective, algorithm: str, expected: list[float]) -> None:
    found = rates(collective, algorithm, router(RING_OF_CHIPS, CHIP))
    assert found == pytest.approx([rate * GB for rate in expected])


@pytest.mark.parametrize(
    ("collective", "algorithm", "expected"),
    [
        # Rows, columns and rows lie along links of their own.
        (ALL_REDUCE, "torus_2d", [10, 10, 10]),
        # To 15 others, 2 links far on average of 16: 32/15 over 4 links.
        (ALL_TO_ALL, "pairwise", [10 / (8 / 15)]),
    ],
)
def test_on_a_square_torus(collective: Collective, algorithm: str, expected: list[float]) -> None:
    found = rates(collective, algorithm, router(SQUARE_OF_CHIPS, CHIP, 16))
    assert found == pytest.approx([rate * GB for rate in expected])


@pytest.mark.parametrize(
    ("collective", "algorithm", "expected"),
    [
        # From 1.1 to 2.0 by 2.1, whose link to 2.0 also carries half of what goes from 2.1 to 0.0:
        # the other half goes by group 1, which is as far.
        (ALL_GATHER, "ring", 4.0 / 1.5),
        # 2 chips to 2 chips, 1/5 each. One of the pairs is as far by the third group: half of it
        # goes there, and half of two such pairs comes by here.
        (ALL_TO_ALL, "pairwise", 4.0 / (4 / 5 - 1 / 10 + 2 / 10)),
    ],
)
def test_between_groups_of_a_dragonfly(
    collective: Collective, algorithm: str, expected: float
) -> None:
    found = rates(collective, algorithm, router(DRAGONFLY, CHIP, 6))
    assert found == pytest.approx([expected * GB])
