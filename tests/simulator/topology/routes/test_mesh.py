"""Collectives over direct links, against the rings that are known for these machines."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.topology.routes.mesh import ring_weights
from simulator.topology.routing import Router
from simulator.topology.topology import Topology
from tests.simulator.topology.machines import built, table

LINK = 25e9
DOUBLE_RING = (0, 3, 2, 1, 5, 6, 7, 4)
SINGLE_RING = (0, 1, 3, 7, 5, 4, 6, 2)
"""The rings of a DGX-1V: the first over double links, twice; the second over single ones."""


def mesh(count: int, links: str) -> Topology:
    unit = {"kind": "mesh", "accelerators": count, "links": links, "link_bandwidth": "25 GB/s"}
    return built(table(unit))


def rate(topology: Topology, members: list[int]) -> float:
    """Return bytes/s of a rank of one group when its fullest link is full."""
    loads = Router(topology).mesh_loads(np.array([members]))
    loaded = loads > 0
    return float((topology.capacity[loaded] / loads[loaded]).min())


def test_a_hybrid_cube_mesh_of_eight_is_its_three_rings_both_ways() -> None:
    topology = mesh(8, "hybrid-cube-mesh")
    expected = np.zeros((8, 8))
    for ring in (DOUBLE_RING, DOUBLE_RING, SINGLE_RING):
        for one, other in zip(ring, (*ring[1:], ring[0]), strict=True):
            expected[one, other] += 1 / 6
            expected[other, one] += 1 / 6
    loads = Router(topology).mesh_loads(np.arange(8)[None])
    found = np.zeros((8, 8))
    graph = topology.unit.graph
    inner = (graph.source < 8) & (graph.target < 8)
    found[graph.source[inner], graph.target[inner]] = loads[: len(graph)][inner]
    assert np.allclose(found, expected)


@pytest.mark.parametrize(
    ("members", "links"),
    [
        (list(range(8)), 6),
        ([0, 1, 2, 3], 4),
        ([4, 5, 6, 7], 4),
        ([0, 3], 2),
        ([0, 1], 1),
        ([0, 1, 4, 5], 2),
    ],
)
def test_groups_of_a_hybrid_cube_mesh_are_as_fast_as_their_rings(
    members: list[int], links: int
) -> None:
    assert rate(mesh(8, "hybrid-cube-mesh"), members) == pytest.approx(links * LINK)


@pytest.mark.parametrize("count", range(2, 9))
def test_all_to_all_xgmi_fills_every_link(count: int) -> None:
    assert rate(mesh(8, "all-to-all"), list(range(count))) == pytest.approx((count - 1) * LINK)


def test_more_than_eight_are_taken_to_spread_by_bandwidth() -> None:
    width = np.ones((12, 12)) - np.eye(12)
    assert np.allclose(ring_weights(width), width / 11)


def test_every_rank_sends_and_receives_one_byte() -> None:
    """Five members, links of different width in both ways alike."""
    rng = np.random.default_rng(3)
    one_way = np.triu(rng.integers(0, 4, size=(5, 5)), 1).astype(np.float64)
    one_way[0, 1] = one_way[1, 2] = one_way[2, 3] = one_way[3, 4] = one_way[0, 4] = 2.0
    weights = ring_weights(one_way + one_way.T)
    assert np.allclose([weights.sum(axis=0), weights.sum(axis=1)], 1.0)


def test_a_line_has_no_ring() -> None:
    line = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    assert ring_weights(line) is None


def test_a_group_without_direct_links_sends_round_over_others() -> None:
    """GPU 0 and 5 of a DGX-1V meet over 1 (1 and 2 links) and 4 (2 and 1), by first width."""
    topology = mesh(8, "hybrid-cube-mesh")
    loads = Router(topology).mesh_loads(np.array([[0, 5]]))
    named = {topology.link_name(link): loads[link] for link in np.flatnonzero(loads).tolist()}
    assert named["node0/gpu0 -> node0/gpu1"] == pytest.approx(1 / 3)
    assert named["node0/gpu0 -> node0/gpu4"] == pytest.approx(2 / 3)
    assert len(named) == 8


def test_on_a_switch_each_sends_all_to_the_next() -> None:
    topology = built(table({"kind": "nvswitch"}, {"kind": "flat"}), 2)
    loads = Router(topology).mesh_loads(np.array([[0, 1, 2, 3], [4, 5, 6, 7]]))
    named = {topology.link_name(link): loads[link] for link in np.flatnonzero(loads).tolist()}
    assert named == {
        name: 1.0
        for unit in (0, 1)
        for gpu in range(4)
        for name in (
            f"node{unit}/gpu{gpu} -> node{unit}/nvswitch",
            f"node{unit}/nvswitch -> node{unit}/gpu{gpu}",
        )
    }


def test_groups_of_all_units_add_up() -> None:
    topology = built(table({"kind": "mesh"}, {"kind": "flat"}), 3)
    router = Router(topology)
    groups = np.arange(12).reshape(3, 4)
    alone = sum(router.mesh_loads(group[None]) for group in groups)
    assert np.allclose(router.mesh_loads(groups), alone)
