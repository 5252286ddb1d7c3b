"""Loads of fabrics against an enumeration of all shortest paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError, UnsupportedError
from simulator.topology.routes.fabric import fabric_routes
from simulator.topology.routing import Router, Spreading
from simulator.topology.topology import Topology
from tests.simulator.topology.machines import built, table
from tests.simulator.topology.routes.oracle import (
    asked_surplus,
    bare_units,
    fabric_of,
    split_over_shortest_paths,
    surplus,
)

WIDTHS = st.sampled_from([1.0, 2.0, 3.0])


@st.composite
def fabrics(draw: st.DrawFn) -> Topology:
    """Return units on switches that a random tree and some more cables join."""
    switches = draw(st.integers(2, 8))
    cables = [(draw(st.integers(0, n - 1)), n, draw(WIDTHS)) for n in range(1, switches)]
    ends = st.tuples(st.integers(0, switches - 1), st.integers(0, switches - 1))
    more = draw(st.lists(ends.filter(lambda pair: pair[0] != pair[1]), max_size=12))
    cables += [(one, other, draw(WIDTHS)) for one, other in more]
    attachment = draw(st.lists(st.integers(0, switches - 1), min_size=2, max_size=5))
    return bare_units(switches, cables, attachment)


@st.composite
def messages(draw: st.DrawFn, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return senders, receivers and bytes."""
    ends = st.integers(0, size - 1)
    rows = draw(st.lists(st.tuples(ends, ends, st.integers(1, 9)), min_size=1, max_size=12))
    source, target, weight = np.array(rows).T
    return source, target, weight.astype(np.float64)


@given(data=st.data(), topology=fabrics())
def test_ideal_spreading_is_the_split_over_all_shortest_paths(
    data: st.DataObject, topology: Topology
) -> None:
    source, target, weight = data.draw(messages(topology.size))
    expected = np.zeros(len(fabric_of(topology).graph))
    for one, other, bytes_ in zip(source, target, weight, strict=True):
        start, end = fabric_of(topology).attachment[[one, other], 0]
        shares = split_over_shortest_paths(fabric_of(topology).graph, int(start), int(end))
        for link, share in shares.items():
            expected[link] += bytes_ * share
    loads = Router(topology).loads(source, target, weight)[topology.first_fabric :]
    assert np.allclose(loads, expected)


@given(data=st.data(), topology=fabrics(), seed=st.integers(0, 2**70))
def test_a_hashed_pair_takes_one_shortest_path(
    data: st.DataObject, topology: Topology, seed: int
) -> None:
    one, other = data.draw(st.tuples(*[st.integers(0, topology.size - 1)] * 2))
    pair = np.array([one]), np.array([other])
    hashed = Router(topology, spreading=Spreading.HASH, seed=seed)
    assert {share for _, share in hashed.route(one, other)} <= {1.0}
    assert hashed.hops(*pair) == pytest.approx(Router(topology).hops(*pair))


@given(data=st.data(), topology=fabrics(), spreading=st.sampled_from(["ideal", "hash"]))
def test_what_a_device_takes_in_it_passes_on(
    data: st.DataObject, topology: Topology, spreading: str
) -> None:
    sent = data.draw(messages(topology.size))
    loads = Router(topology, spreading=Spreading(spreading)).loads(*sent)
    assert np.allclose(surplus(topology, loads), asked_surplus(topology, *sent))


@given(data=st.data(), topology=fabrics())
def test_without_a_failed_link_all_is_as_if_it_had_never_been_laid(
    data: st.DataObject, topology: Topology
) -> None:
    cables = len(fabric_of(topology).graph) // 2
    cable = data.draw(st.integers(0, cables - 1))
    sent = data.draw(messages(topology.size))
    ends = fabric_of(topology).graph.source, fabric_of(topology).graph.target
    kept = [
        (
            int(ends[0][2 * n]),
            int(ends[1][2 * n]),
            float(fabric_of(topology).graph.bandwidth[2 * n]),
        )
        for n in range(cables)
        if n != cable
    ]
    plugs = fabric_of(topology).attachment[:, 0].tolist()
    without = bare_units(len(fabric_of(topology).graph.devices), kept, plugs)
    first = topology.first_fabric
    failed = replace(topology, changed=((first + 2 * cable, 0.0), (first + 2 * cable + 1, 0.0)))
    try:
        expected = Router(without).loads(*sent)
    except InputError:
        with pytest.raises(InputError, match="failed: s"):
            Router(failed).loads(*sent)
        return
    loads = Router(failed).loads(*sent)
    gone = [first + 2 * cable, first + 2 * cable + 1]
    assert not loads[gone].any()
    assert np.allclose(np.delete(loads, gone), expected)


def test_a_pair_splits_by_the_width_of_its_next_links() -> None:
    square = [(0, 1, 1.0), (1, 3, 1.0), (0, 2, 3.0), (2, 3, 3.0)]
    topology = bare_units(4, square, [0, 3])
    named = {topology.link_name(link): share for link, share in Router(topology).route(0, 1)}
    assert named == {
        "node0/chip -> s0": 1.0,
        "s0 -> s1": 0.25,
        "s1 -> s3": 0.25,
        "s0 -> s2": 0.75,
        "s2 -> s3": 0.75,
        "s3 -> node1/chip": 1.0,
    }


def torus(shape: list[int]) -> Topology:
    units = int(np.prod(shape))
    inside = {"kind": "torus", "shape": shape, "bandwidth": "50 GB/s"}
    return built(table({"kind": "bare", "accelerators": 1}, inside), units)


def test_dimension_order_goes_along_x_first_and_both_ways_round_an_even_ring() -> None:
    topology = torus([4, 4])
    router = Router(topology, spreading=Spreading.DIMENSION_ORDER)
    target = 1 + 2 * 4
    inner = [x for x in router.route(0, target) if x[0] >= topology.first_fabric]
    assert {topology.link_name(link): share for link, share in inner} == {
        "r0.0 -> r1.0": 1.0,
        "r1.0 -> r1.1": 0.5,
        "r1.1 -> r1.2": 0.5,
        "r1.0 -> r1.3": 0.5,
        "r1.3 -> r1.2": 0.5,
    }


def test_all_to_all_on_a_ring_loads_every_link_alike() -> None:
    """Of k = 8: distances 1, 2, 3 twice and 4 once, 16 hops a chip over its two links."""
    topology = torus([8])
    source, target = (ends.ravel() for ends in np.indices((8, 8)))
    router = Router(topology, spreading=Spreading.DIMENSION_ORDER)
    loads = router.loads(source, target, np.ones(64))
    assert np.allclose(loads[topology.first_fabric :], 8.0)


def test_only_a_torus_has_an_order_of_dimensions() -> None:
    topology = bare_units(2, [(0, 1, 1.0)], [0, 1])
    with pytest.raises(UnsupportedError, match="only a torus has an order of dimensions"):
        Router(topology, spreading=Spreading.DIMENSION_ORDER).hops(np.array([0]), np.array([1]))


def test_the_seed_changes_which_paths_pairs_take() -> None:
    ways = [(end, n, 1.0) for n in range(1, 9) for end in (0, 9)]
    topology = bare_units(10, ways, [0, 9] * 8)
    one, other = np.arange(0, 16, 2), np.arange(1, 16, 2)
    loads = [
        Router(topology, spreading=Spreading.HASH, seed=seed).loads(one, other, np.ones(8))
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(loads[0], loads[1])
    assert not np.array_equal(loads[0], loads[2])


def test_hashes_fill_equal_paths_about_equally() -> None:
    paths, pairs = 4, 4000
    ways = [(0, n, 1.0) for n in range(1, 5)] + [(n, 5, 1.0) for n in range(1, 5)]
    topology = bare_units(6, ways, [0] * pairs + [5] * pairs)
    one = np.arange(pairs)
    loads = Router(topology, spreading=Spreading.HASH).loads(one, one + pairs, np.ones(pairs))
    onward = [
        link
        for link in range(topology.first_fabric, topology.links)
        if topology.link_name(link).startswith("s0 -> ")
    ]
    four_sigma = 4 * (pairs / paths * (1 - 1 / paths)) ** 0.5
    assert np.abs(loads[onward] - pairs / paths).max() < four_sigma


def test_equal_spines_are_one_and_a_damaged_one_stands_alone() -> None:
    """4 leaves x 8 spines are 4 + 1 devices; one slower uplink makes its spine another."""
    cables = [(leaf, 4 + spine, 1.0) for leaf in range(4) for spine in range(8)]
    topology = bare_units(12, cables, [0, 1, 2, 3])
    sizes = []
    for slow in (1.0, 0.5):
        bandwidth = fabric_of(topology).graph.bandwidth.copy()
        bandwidth[0] = slow
        routes = fabric_routes(fabric_of(topology), bandwidth, Spreading.IDEAL, 0)
        sizes.append((routes.contracted.arcs.devices, len(routes.contracted.arcs.link)))
    assert sizes == [(5, 8), (6, 16)]
