"""What every kind of unit and of fabric must do, whatever it is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from simulator.topology.build import load_topology
from simulator.topology.registry import FABRICS, UNITS
from simulator.topology.topology import Topology
from simulator.topology.whole import device_count, device_name, link_ends
from tests.simulator.topology.machines import (
    CONTEXT,
    SMALLEST_FABRICS,
    SMALLEST_UNITS,
    UNITS_BUILT,
    WIDTH,
    accelerators,
    built,
    problems_of,
    reached,
    smallest,
    table,
)

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "topology.md"
PAIRS = [(unit, fabric) for unit in UNITS for fabric in FABRICS]
pairs = pytest.mark.parametrize(("unit", "fabric"), PAIRS, ids="-".join)


def of_pair(unit: str, fabric: str) -> Topology:
    return built(smallest(unit, fabric), UNITS_BUILT)


def test_every_kind_has_a_smallest_table_here() -> None:
    assert (set(SMALLEST_UNITS), set(SMALLEST_FABRICS)) == (set(UNITS), set(FABRICS))


@pairs
def test_a_small_file_builds_what_was_asked_for(unit: str, fabric: str) -> None:
    topology = of_pair(unit, fabric)
    assert (topology.units, topology.width) == (UNITS_BUILT, WIDTH)


@pairs
def test_all_accelerators_reach_each_other(unit: str, fabric: str) -> None:
    topology = of_pair(unit, fabric)
    everything = accelerators(topology)
    assert all(set(everything) <= reached(topology, start) for start in everything)


@pairs
def test_every_cable_carries_the_same_both_ways(unit: str, fabric: str) -> None:
    topology = of_pair(unit, fabric)
    source, target = link_ends(topology)
    there = Counter(zip(source, target, topology.capacity, strict=True))
    back = Counter(zip(target, source, topology.capacity, strict=True))
    assert there == back


@pairs
def test_every_link_carries_something(unit: str, fabric: str) -> None:
    assert (of_pair(unit, fabric).capacity > 0).all()


@pairs
def test_every_device_has_its_own_name(unit: str, fabric: str) -> None:
    topology = of_pair(unit, fabric)
    names = [device_name(topology, device) for device in range(device_count(topology))]
    assert len(set(names)) == len(names)


@pairs
def test_links_are_named_by_their_ends(unit: str, fabric: str) -> None:
    topology = of_pair(unit, fabric)
    named = [
        f"{device_name(topology, int(one))} -> {device_name(topology, int(other))}"
        for one, other in zip(*link_ends(topology), strict=True)
    ]
    assert [topology.link_name(link) for link in range(topology.links)] == named


@pairs
def test_a_file_gives_the_same_links_as_its_table(unit: str, fabric: str, tmp_path: Path) -> None:
    path = tmp_path / "net.toml"
    path.write_text(tomlkit.dumps(smallest(unit, fabric)), "utf-8")
    read, told = load_topology(path, CONTEXT, UNITS_BUILT), of_pair(unit, fabric)
    names = [[t.link_name(link) for link in range(t.links)] for t in (read, told)]
    assert names[0] == names[1]
    assert np.array_equal(read.capacity, told.capacity)


@pairs
def test_each_accelerator_has_a_port(unit: str, fabric: str) -> None:
    topology = of_pair(unit, fabric)
    assert topology.unit.affinity.shape == (topology.width,)
    assert set(topology.unit.affinity) <= set(range(topology.port_count))


@given(pair=st.sampled_from(PAIRS), factor=st.floats(1e-3, 1e3))
def test_bandwidths_come_from_the_profile_or_the_file_and_nowhere_else(
    pair: tuple[str, str], factor: float
) -> None:
    given_here = smallest(*pair)
    scaled = replace(
        CONTEXT,
        scale_up_bandwidth=factor * CONTEXT.scale_up_bandwidth,
        nic_bandwidth=factor * CONTEXT.nic_bandwidth,
        host_bandwidth=factor * CONTEXT.host_bandwidth,
    )
    ratio = built(given_here, UNITS_BUILT, scaled).capacity / of_pair(*pair).capacity
    written = {"graph", "torus", "wan"} & set(pair)
    assert all(
        np.isclose(part, factor) or (written and np.isclose(part, 1.0)) for part in set(ratio)
    )


@given(pair=st.sampled_from(PAIRS), factor=st.floats(1e-3, 1e3))
def test_latencies_come_from_the_profile_or_the_file_and_nowhere_else(
    pair: tuple[str, str], factor: float
) -> None:
    scaled = replace(
        CONTEXT,
        scale_up_latency=factor * CONTEXT.scale_up_latency,
        nic_latency=factor * CONTEXT.nic_latency,
    )
    before, after = of_pair(*pair), built(smallest(*pair), UNITS_BUILT, scaled)
    assert np.allclose(after.unit.graph.latency, factor * before.unit.graph.latency)
    assert np.allclose(after.fabric.port_latency, factor * before.fabric.port_latency)


@pytest.mark.parametrize("fabric", FABRICS)
def test_cables_of_nics_carry_the_share_that_large_messages_achieve(fabric: str) -> None:
    ports = of_pair("nvswitch", fabric).fabric.port_bandwidth
    assert np.allclose(ports, 0.9 * 50e9)


@pytest.mark.parametrize("kind", UNITS)
def test_a_misspelt_key_of_a_unit_is_named_with_its_table(kind: str) -> None:
    found = problems_of(table({"kind": kind, **SMALLEST_UNITS[kind], "acelerators": 4}))
    assert found == [
        "net.toml: unit.acelerators: unknown key\n    fix: did you mean 'accelerators'?"
    ]


@pytest.mark.parametrize("kind", FABRICS)
def test_a_misspelt_key_of_a_fabric_is_named_with_its_table(kind: str) -> None:
    inside = {"kind": kind, **SMALLEST_FABRICS[kind], "reduce": True}
    assert problems_of(table({"kind": "nvswitch"}, inside)) == [
        "net.toml: fabric.reduce: unknown key\n    fix: did you mean 'reduces'?"
    ]


@pytest.mark.parametrize(
    "heading",
    [
        f"## {part}: {kind}"
        for part, kinds in (("Unit", UNITS), ("Fabric", FABRICS))
        for kind in kinds
    ],
)
def test_every_kind_is_documented(heading: str) -> None:
    assert heading in PAGE.read_text("utf-8").splitlines()
