from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulator.topology.fabrics.tiers import Tier, leaves_of_ports, tree_graph
from tests.simulator.topology.fabrics.cases import GB


def test_cables_are_dealt_in_turn_over_the_switches_above() -> None:
    lower = Tier(groups=2, joins=1, switches=1, uplinks=3, bandwidth=GB)
    graph = tree_graph([lower, Tier(groups=1, joins=2, switches=2)])
    assert [graph.link_name(link) for link in range(0, len(graph), 2)] == [
        "leaf0 -> spine0",
        "leaf0 -> spine1",
        "leaf0 -> spine0",
        "leaf1 -> spine1",
        "leaf1 -> spine0",
        "leaf1 -> spine1",
    ]


def test_a_plane_has_one_switch_of_each_rail_where_rails_meet() -> None:
    # Spines 0 1 | 2 3 of rails 0 and 1: the first two are plane 0, the last two plane 1.
    leaf = Tier(groups=1, joins=1, switches=2, uplinks=2, bandwidth=GB)
    spine = Tier(groups=1, joins=1, switches=4, planes=2, uplinks=1, bandwidth=GB)
    core = Tier(groups=1, joins=1, switches=2, planes=2, mixes=2)

    graph = tree_graph([leaf, spine, core], rails=True)

    last = [graph.link_name(link) for link in range(8, 16, 2)]
    assert last == [
        "spine0.0 -> core0",
        "spine0.1 -> core0",
        "spine0.2 -> core1",
        "spine0.3 -> core1",
    ]


def test_names_count_groups_and_the_switches_of_each() -> None:
    tiers = [
        Tier(groups=2, joins=1, switches=1, uplinks=1, bandwidth=GB),
        Tier(groups=2, joins=1, switches=1, uplinks=1, bandwidth=GB),
        Tier(groups=1, joins=2, switches=1, uplinks=1, bandwidth=GB),
        Tier(groups=1, joins=1, switches=1),
    ]
    names = ("leaf0", "leaf1", "spine0.0", "spine1.0", "core0.0", "tier3.0")
    assert tree_graph(tiers).devices == names


def test_units_fill_group_after_group() -> None:
    leaves = Tier(groups=2, joins=2, switches=2)
    assert leaves_of_ports(leaves, 3, 2).tolist() == [[0, 1], [0, 1], [2, 3]]


@given(
    joins=st.integers(1, 4),
    planes=st.integers(1, 3),
    rails=st.integers(1, 3),
    turns=st.integers(1, 2),
    cables=st.tuples(st.integers(1, 5), st.integers(0, 7)),
)
def test_each_switch_reaches_its_whole_plane_and_cables_differ_by_one_at_most(
    joins: int, planes: int, rails: int, turns: int, cables: tuple[int, int]
) -> None:
    width, more = cables
    below = planes * rails * turns
    lower = Tier(groups=joins, joins=1, switches=below, uplinks=width + more, bandwidth=GB)
    upper = Tier(groups=1, joins=joins, switches=planes * width, planes=planes, mixes=rails)

    graph = tree_graph([lower, upper], rails=True)

    source, target = graph.source[::2], graph.target[::2] - lower.size
    laid = np.zeros((lower.size, upper.size), dtype=int)
    np.add.at(laid, (source, target), 1)
    plane = np.arange(lower.size) % below // rails % planes
    reached = (np.arange(upper.size) % planes)[None, :] == plane[:, None]
    assert np.array_equal(laid > 0, reached)
    assert np.ptp(laid.sum(axis=0)) <= 1
