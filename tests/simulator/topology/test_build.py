"""Topologies of profiles: what the profile says, found again in the links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from simulator.errors import InputError, UnsupportedError
from simulator.hardware.cluster import ScaleUpKind
from simulator.hardware.profile import Profile, load_profile, profile_names
from simulator.topology.build import topology_of_nodes, topology_of_profile
from simulator.topology.context import context_of
from simulator.topology.graph import DeviceKind
from simulator.topology.topology import Topology
from simulator.topology.topology_file import parse_topology
from tests.simulator.topology.machines import CONTEXT, table

PROFILES = {name: load_profile(name) for name in profile_names()}
TORI = [n for n, p in PROFILES.items() if p.node.scale_up.kind is ScaleUpKind.TORUS]
WITH_NICS = [n for n, p in PROFILES.items() if p.node.nic is not None and n not in TORI]


def two_domains(name: str) -> tuple[Profile, Topology]:
    """Return a profile and its topology of two scale-up domains."""
    profile = PROFILES[name]
    nodes = 2 * profile.node.scale_up.domain_size // profile.node.accelerators
    return profile, topology_of_profile(profile, nodes)


def latencies(topology: Topology) -> np.ndarray:
    """Return seconds of a message between any two devices of a unit, without forwarding NICs."""
    graph = topology.unit.graph
    inside = ~np.isin(graph.source, graph.of_kind(DeviceKind.NIC))
    size = len(graph.devices)
    edges = coo_array(
        (graph.latency[inside], (graph.source[inside], graph.target[inside])), shape=(size, size)
    )
    return dijkstra(edges)


@pytest.mark.parametrize("name", WITH_NICS)
def test_nics_of_a_cluster_add_up_to_those_of_the_profile(name: str) -> None:
    profile, topology = two_domains(name)
    assert topology.fabric is not None
    together = topology.fabric.port_bandwidth.sum()
    assert together == pytest.approx(profile.nic_bandwidth * topology.size)


@pytest.mark.parametrize("name", [n for n in PROFILES if n not in TORI])
def test_links_of_an_accelerator_add_up_to_those_of_the_profile(name: str) -> None:
    profile = PROFILES[name]
    nodes = max(1, profile.node.scale_up.domain_size // profile.node.accelerators)
    graph = topology_of_profile(profile, nodes).unit.graph
    to_nics = np.isin(graph.target, graph.of_kind(DeviceKind.NIC))
    if name == "lan-workstations" or profile.node.scale_up.domain_size == 1:
        return
    for accelerator in range(profile.node.scale_up.domain_size):
        out = graph.bandwidth[(graph.source == accelerator) & ~to_nics].sum()
        assert out == pytest.approx(profile.node.scale_up.bandwidth)


@pytest.mark.parametrize("name", WITH_NICS)
def test_a_message_in_a_unit_takes_the_latency_of_the_profile(name: str) -> None:
    profile, topology = two_domains(name)
    inside = latencies(topology)[: topology.width, : topology.width]
    between = inside[~np.eye(topology.width, dtype=bool)]
    assert np.allclose(between, profile.node.scale_up.latency)


@pytest.mark.parametrize("name", WITH_NICS)
def test_a_message_over_one_leaf_takes_the_latency_of_the_profile(name: str) -> None:
    profile, topology = two_domains(name)
    assert profile.node.nic is not None
    assert topology.fabric is not None
    unit = topology.unit
    near = latencies(topology)[unit.accelerators, unit.ports[unit.affinity]]
    cable = topology.fabric.port_latency[0][unit.affinity]
    assert np.allclose(2 * (near + cable), profile.node.nic.latency)


@pytest.mark.parametrize("name", TORI)
def test_links_of_a_chip_in_a_torus_add_up_to_those_of_the_profile(name: str) -> None:
    profile = PROFILES[name]
    whole = profile.node.scale_up.domain_size // profile.node.accelerators
    topology = topology_of_profile(profile, whole)
    assert topology.fabric is not None
    graph = topology.fabric.graph
    out = np.bincount(graph.source, weights=graph.bandwidth)
    assert np.allclose(out, profile.node.scale_up.bandwidth)


@pytest.mark.parametrize(
    ("name", "nodes", "shape", "rings"),
    [
        ("tpu-v4-pod", 1, (1, 2, 2), 0),
        ("tpu-v4-pod", 8, (2, 4, 4), 0),
        ("tpu-v4-pod", 32, (4, 4, 8), 3),
        ("tpu-v5e-pod", 8, (8, 8), 0),
        ("tpu-v5e-pod", 16, (8, 16), 1),
        ("tpu-v5e-pod", 32, (16, 16), 2),
    ],
)
def test_a_slice_of_tpus_has_the_shape_and_rings_that_google_gives_it(
    name: str, nodes: int, shape: tuple[int, ...], rings: int
) -> None:
    """Shapes: Google Cloud, TPU v5p and v5e; rings: JAX scaling book, tpus.md."""
    fabric = topology_of_profile(PROFILES[name], nodes).fabric
    assert fabric is not None
    corner = fabric.graph.devices[-1]
    lengths = tuple(int(part) + 1 for part in corner.removeprefix("r").split("."))
    chips = int(np.prod(shape))
    open_cables = sum(chips // side * (side - 1) for side in shape)
    closed = sorted(chips // side for side in shape)[:rings]
    assert lengths == shape
    assert len(fabric.graph) == 2 * (open_cables + sum(closed))


@pytest.mark.parametrize(
    ("nodes", "units", "width"), [(1, 1, 4), (16, 1, 64), (18, 1, 72), (36, 2, 72), (128, 8, 64)]
)
def test_racks_are_filled_evenly(nodes: int, units: int, width: int) -> None:
    topology = topology_of_profile(PROFILES["gb200-nvl72"], nodes)
    assert (topology.units, topology.width) == (units, width)


def test_racks_that_cannot_be_filled_evenly_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        topology_of_profile(PROFILES["gb200-nvl72"], 19)
    assert str(caught.value) == (
        "gb200-nvl72: nodes: 2 scale-up domains of 18 nodes are filled evenly (found 19)\n"
        "    fix: take 18 nodes"
    )


def test_a_cluster_without_nics_is_refused() -> None:
    with pytest.raises(InputError, match="has no NIC"):
        topology_of_profile(PROFILES["local-cpu"], 2)


def test_more_chips_than_a_torus_has_are_not_modelled() -> None:
    with pytest.raises(UnsupportedError) as caught:
        topology_of_profile(PROFILES["tpu-v5e-pod"], 33)
    assert str(caught.value) == (
        "tpu-v5e-pod: nodes: one torus has at most 256; several are not joined here "
        "(found 264 accelerators)\n    fix: take 32 nodes or fewer"
    )


def test_a_leaf_of_less_than_a_rack_is_refused() -> None:
    profile = PROFILES["gb200-nvl72"]
    machine = profile.machine.model_copy(
        update={"fabric": profile.fabric.model_copy(update={"nodes_per_leaf": 27})}
    )
    with pytest.raises(InputError) as caught:
        topology_of_profile(profile.model_copy(update={"machine": machine}), 36)
    assert str(caught.value) == (
        "gb200-nvl72: fabric.nodes_per_leaf: a unit is 18 nodes, and units are plugged into a "
        "leaf as a whole (found 27)\n    fix: take 18"
    )


def test_nodes_are_counted_in_accelerators() -> None:
    """8 nodes of 4 are 2 units of 16."""
    given = table({"kind": "nvswitch", "accelerators": 16}, {"kind": "flat"})
    topology = topology_of_nodes(parse_topology(given, "net.toml"), CONTEXT, 8)
    assert (topology.units, topology.width, topology.port_count) == (2, 16, 16)


def test_nodes_that_are_no_whole_units_are_refused() -> None:
    given = table({"kind": "nvswitch", "accelerators": 16}, {"kind": "flat"})
    with pytest.raises(InputError) as caught:
        topology_of_nodes(parse_topology(given, "net.toml"), CONTEXT, 9)
    assert str(caught.value) == (
        "net.toml: unit: a unit has 16 accelerators, and a cluster is whole units "
        "(found 36 accelerators on 9 nodes)\n    fix: take 32 accelerators, or other units"
    )


def test_a_fabric_needs_ports_to_be_plugged_into() -> None:
    given = table({"kind": "nvswitch"}, {"kind": "flat"})
    with pytest.raises(InputError, match="units have no NIC"):
        topology_of_nodes(parse_topology(given, "net.toml"), replace(CONTEXT, nics=None), 2)


def test_a_profile_leaves_nothing_out() -> None:
    context = context_of(PROFILES["dgx-h100"])
    unsaid = [name for name in context.__slots__ if getattr(context, name) is None]
    assert unsaid == ["torus_axes"]
