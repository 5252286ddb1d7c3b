from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.topology.context import Context
from simulator.topology.fabrics.torus import coordinates
from tests.simulator.topology.fabrics.cases import (
    GB,
    NIC,
    bisection,
    cables,
    chips,
    cut,
    diameter,
    fabric,
    islands,
    refused,
    uplinks_of,
)

CHIP = Context(scale_up_bandwidth=600 * GB, scale_up_latency=1e-6)


@pytest.mark.parametrize("shape", [[4, 4], [4, 4, 8], [6, 2, 4]])
def test_a_torus_cut_across_its_longest_dimension_has_2_n_over_k_links(shape: list[int]) -> None:
    count, longest = prod(shape), max(shape)

    built = fabric("torus", count, chips(1), CHIP, shape=shape, bandwidth="50 GB/s")

    places = coordinates(built.graph)
    assert places is not None
    low = places[built.attachment[:, 0], shape.index(longest)] < longest // 2
    across = cut(built, np.flatnonzero(low).tolist(), np.flatnonzero(~low).tolist())
    assert (across, cables(built)) == (2 * count / longest * NIC, len(shape) * count)


def test_a_mesh_has_half_the_bisection_of_a_torus() -> None:
    wrap = [True, True, False]
    built = fabric("torus", 32, chips(1), CHIP, shape=[2, 2, 8], wrap=wrap, bandwidth="50 GB/s")
    assert (bisection(built), cables(built)) == (4 * NIC, 32 + 32 + 28)


def test_the_longest_way_round_a_torus_is_half_of_each_dimension() -> None:
    built = fabric("torus", 120, chips(1), CHIP, shape=[4, 5, 6])
    assert diameter(built) == 2 + 2 + 3


def test_the_longest_way_through_a_mesh_is_all_of_each_dimension() -> None:
    built = fabric("torus", 120, chips(1), CHIP, shape=[4, 5, 6], wrap=[False] * 3)
    assert diameter(built) == 3 + 4 + 5


def test_ports_fill_the_first_dimension_first() -> None:
    built = fabric("torus", 6, chips(1), CHIP, shape=[3, 2])
    names = [built.graph.devices[router] for router in built.attachment.ravel()]
    assert names == ["r0.0", "r1.0", "r2.0", "r0.1", "r1.1", "r2.1"]


def test_units_can_be_blocks_of_the_torus() -> None:
    # Hosts of 2 x 2 chips, as in a TPU v4 pod.
    built = fabric("torus", 4, chips(4), CHIP, shape=[4, 4, 1], unit_shape=[2, 2, 1])

    names = [[built.graph.devices[router] for router in unit] for unit in built.attachment]
    assert names[1] == ["r2.0.0", "r3.0.0", "r2.1.0", "r3.1.0"]
    assert sorted(built.attachment.ravel().tolist()) == list(range(16))


def test_a_router_has_a_link_both_ways_in_each_dimension() -> None:
    built = fabric("torus", 9, chips(1), CHIP, shape=[3, 3])
    assert sorted(uplinks_of(built, "r0.1")) == ["r0.0", "r0.2", "r1.1", "r2.1"]


def test_a_ring_of_two_has_both_of_its_cables_and_of_one_none() -> None:
    built = fabric("torus", 2, chips(1), CHIP, shape=[2, 1])
    assert uplinks_of(built, "r0.0") == ["r1.0", "r1.0"]


def test_an_accelerator_shares_its_scale_up_bandwidth_over_its_links() -> None:
    built = fabric("torus", 8, chips(1), CHIP, shape=[2, 2, 2])
    assert set(built.graph.bandwidth.tolist()) == {100 * GB}


def test_a_slice_flatter_than_the_machine_has_the_links_of_the_machine() -> None:
    context = Context(scale_up_bandwidth=600 * GB, torus_axes=3)
    built = fabric("torus", 4, chips(1), context, shape=[2, 2])
    assert set(built.graph.bandwidth.tolist()) == {100 * GB}


def test_links_between_nics_have_the_bandwidth_and_the_efficiency_of_nics() -> None:
    context = Context(nic_bandwidth=NIC, nic_latency=4e-6, nic_efficiency=0.8)
    built = fabric("torus", 4, 1, context, shape=[4])
    assert set(built.graph.bandwidth.tolist()) == {40 * GB}


def test_coordinates_are_those_of_the_name_and_of_no_other_fabric() -> None:
    built = fabric("torus", 6, chips(1), CHIP, shape=[3, 2])

    found = coordinates(built.graph)

    assert found is not None
    assert [f"r{x}.{y}" for x, y in found] == list(built.graph.devices)
    assert coordinates(fabric("flat", 2, 1).graph) is None


def test_a_shape_of_another_size_is_refused_with_the_right_one() -> None:
    (problem,) = refused("torus", 3, chips(4), shape=[2, 2, 2])
    assert problem.rule == "3 units of 4 ports need 12 routers, one a port"


def test_a_block_of_another_size_is_refused() -> None:
    (problem,) = refused("torus", 2, chips(4), shape=[2, 2, 2], unit_shape=[2, 1, 1])
    assert problem.key == "fabric.unit_shape"


@pytest.mark.parametrize(
    ("keys", "rule"),
    [
        ({"wrap": [True]}, "wrap has 1 entries and shape 2"),
        ({"unit_shape": [3, 1]}, "do not fill a shape"),
    ],
)
def test_lists_that_do_not_fit_the_shape_are_refused(keys: dict[str, object], rule: str) -> None:
    with pytest.raises(InputError, match=rule):
        fabric("torus", 4, chips(1), CHIP, shape=[2, 2], **keys)


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3),
    wrap=st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_every_port_reaches_every_other_with_its_share_of_links(
    shape: list[int], wrap: list[bool]
) -> None:
    count, closed = prod(shape), wrap[: len(shape)]

    built = fabric("torus", count, chips(1), CHIP, shape=shape, wrap=closed)

    links = sum(
        count // side * (side if ring and side > 1 else side - 1)
        for side, ring in zip(shape, closed, strict=True)
    )
    assert (islands(built), cables(built)) == (1, links)
