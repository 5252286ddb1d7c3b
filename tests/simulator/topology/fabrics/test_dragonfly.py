from __future__ import annotations

from collections import Counter
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulator.topology.fabrics.cases import (
    NIC,
    bisection,
    cables,
    cut,
    diameter,
    fabric,
    islands,
    refused,
    uplinks_of,
)

BALANCED = {"routers": 4, "ports": 2, "global_links": 2}
"""a = 2 p = 2 h: nine groups of eight ports. Source: Kim et al. (2008), figure 5: N = 72."""


def test_a_balanced_dragonfly_joins_72_ports_by_36_routers() -> None:
    built = fabric("dragonfly", 72, 1, **BALANCED)
    # Nine groups of 6 links inside, and one link between each two groups.
    assert (len(built.graph.devices), cables(built)) == (36, 9 * 6 + 36)


def test_minimal_ways_are_at_most_local_global_local() -> None:
    built = fabric("dragonfly", 72, 1, **BALANCED)
    assert diameter(built) == 3


def test_every_router_of_a_full_dragonfly_has_all_its_global_links() -> None:
    built = fabric("dragonfly", 72, 1, **BALANCED)
    assert np.bincount(built.graph.source).tolist() == [3 + 2] * 36


def test_global_links_go_to_the_other_groups_in_order() -> None:
    # Group 3 skips itself: its eight links go to 0 1 | 2 4 | 5 6 | 7 8, two a router.
    built = fabric("dragonfly", 72, 1, **BALANCED)
    groups = [
        sorted({name.split(".")[0] for name in uplinks_of(built, f"g3.r{router}")} - {"g3"})
        for router in range(4)
    ]
    assert groups == [["g0", "g1"], ["g2", "g4"], ["g5", "g6"], ["g7", "g8"]]


def test_fewer_groups_share_the_global_links_evenly() -> None:
    # 8 global links a group, 3 other groups: 2 to each, and 2 unused.
    built = fabric("dragonfly", 32, 1, **BALANCED)

    pairs = Counter(
        (built.graph.devices[one].split(".")[0], built.graph.devices[other].split(".")[0])
        for one, other in zip(built.graph.source, built.graph.target, strict=True)
    )

    between = {pair: count for pair, count in pairs.items() if pair[0] != pair[1]}
    assert set(between.values()) == {2}
    assert len(between) == 4 * 3


def test_the_cut_between_two_groups_is_their_global_links_where_no_other_helps() -> None:
    keys = {"routers": 2, "ports": 4, "global_links": 1}
    built = fabric("dragonfly", 16, 1, **keys)
    assert bisection(built) == 2 * NIC


def test_the_cut_of_half_the_groups_is_their_global_links() -> None:
    # Two groups and two others: 2 x 2 pairs of groups, 2 links each.
    built = fabric("dragonfly", 32, 1, **BALANCED)
    assert cut(built, range(16), range(16, 32)) == 8 * NIC


def test_the_last_group_has_the_ports_that_remain_and_all_its_routers() -> None:
    built = fabric("dragonfly", 17, 1, **BALANCED)
    assert (len(built.graph.devices), np.bincount(built.attachment.ravel())[-1]) == (12, 1)


def test_a_single_group_has_no_global_links() -> None:
    built = fabric("dragonfly", 4, 2, **BALANCED)
    assert (len(built.graph.devices), cables(built)) == (4, 6)


def test_local_and_global_links_have_their_own_numbers() -> None:
    built = fabric(
        "dragonfly", 16, 1, **BALANCED, global_bandwidth="25 GB/s", global_latency="1 us"
    )
    # Two groups of six local links, and all eight global links between them.
    graph = built.graph
    found = Counter(zip(graph.bandwidth.tolist(), graph.latency.tolist(), strict=True))
    assert found == {(NIC, 0.0): 24, (NIC / 2, 1e-6): 16}


def test_more_groups_than_global_links_can_join_are_refused() -> None:
    (problem,) = refused("dragonfly", 80, 1, **BALANCED)
    assert (problem.rule, problem.fix) == (
        "a group has 4 x 2 global links, so there are at most 9 groups",
        "global_links = 3, or fewer and larger groups",
    )


def test_fewer_groups_than_the_ports_need_are_refused() -> None:
    (problem,) = refused("dragonfly", 72, 1, **BALANCED, groups=8)
    assert problem.fix == "groups = 9"


@given(
    routers=st.integers(1, 5),
    ports=st.integers(1, 3),
    links=st.integers(1, 3),
    groups=st.integers(1, 8),
    data=st.data(),
)
def test_every_port_reaches_every_other_and_no_router_has_too_many_links(
    routers: int, ports: int, links: int, groups: int, data: st.DataObject
) -> None:
    groups = min(groups, routers * links + 1)
    units = data.draw(st.integers(1, groups * routers * ports))

    built = fabric("dragonfly", units, 1, routers=routers, ports=ports, global_links=links)

    count = ceil(units / (routers * ports))
    used = np.bincount(built.graph.source, minlength=count * routers)
    assert len(built.graph.devices) == count * routers
    assert (islands(built), used.max() <= routers - 1 + links) == (1, True)
    assert np.bincount(built.attachment.ravel()).max() <= ports


@pytest.mark.parametrize("groups", [2, 3, 5, 9])
def test_every_two_groups_have_equally_many_links(groups: int) -> None:
    built = fabric("dragonfly", 8 * groups, 1, **BALANCED)
    between = np.zeros((groups, groups), dtype=int)
    np.add.at(between, (built.graph.source // 4, built.graph.target // 4), 1)
    assert set(between[~np.eye(groups, dtype=bool)].tolist()) == {8 // (groups - 1)}
