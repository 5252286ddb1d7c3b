"""A topology in numbers: tiers, oversubscription, bisection and diameter, by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from simulator.topology.build import build_topology
from simulator.topology.facts import topology_facts
from simulator.topology.topology import Topology
from simulator.topology.topology_file import parse_topology
from tests.simulator.topology.machines import CONTEXT, GB

NIC = 50 * 0.9 * GB
"""Bytes/s that one of the four NICs of a unit achieves."""
SWITCHED = {"kind": "nvswitch", "accelerators": 4}


def topology(
    units: int, fabric: dict[str, Any] | None, unit: dict[str, Any] | None = None
) -> Topology:
    """Return a topology of units of four accelerators with four NICs of 45 GB/s."""
    table = {"title": "test", "unit": unit or SWITCHED, **({"fabric": fabric} if fabric else {})}
    return build_topology(parse_topology(table, "test"), CONTEXT, units)


TWO_TIERS = {"kind": "fat-tree", "tiers": [{"joins": 4, "oversubscription": 2.0}, {}]}


def test_oversubscription_is_found_at_its_tier() -> None:
    facts = topology_facts(topology(8, TWO_TIERS))
    assert [(t.number, t.oversubscription) for t in facts.tiers] == [
        (1, pytest.approx(2.0)),
        (2, None),
    ]


def test_bandwidth_of_a_tier_is_that_of_all_its_cables() -> None:
    leaves, spines = topology_facts(topology(8, TWO_TIERS)).tiers
    found = [leaves.switches, leaves.into / NIC, leaves.out / NIC, spines.into / NIC, spines.out]
    assert found == pytest.approx([2, 32, 16, 16, 0])


def test_bisection_of_an_oversubscribed_tree_is_what_a_leaf_has_upwards() -> None:
    assert topology_facts(topology(8, TWO_TIERS)).half == pytest.approx(8 * NIC, rel=1e-6)


def test_bisection_of_one_switch_is_half_of_all_ports() -> None:
    assert topology_facts(topology(6, {"kind": "flat"})).half == pytest.approx(12 * NIC, rel=1e-6)


def test_bisection_of_a_torus_is_two_cables_a_line() -> None:
    unit = {"kind": "bare", "accelerators": 4}
    facts = topology_facts(topology(16, {"kind": "torus", "shape": [8, 8]}, unit))
    # Two cuts across eight lines; a cable has a quarter of an accelerator's 300 GB/s.
    assert facts.half == pytest.approx(2 * 8 * 75 * GB, rel=1e-6)


def test_a_unit_behind_a_switch_has_the_bisection_of_half_its_accelerators() -> None:
    assert topology_facts(topology(1, None)).half == pytest.approx(600 * GB, rel=1e-6)


def test_diameter_counts_switches() -> None:
    one, two = topology(6, {"kind": "flat"}), topology(8, TWO_TIERS)
    assert [topology_facts(each).switches_passed for each in (one, two)] == [1, 3]


def test_diameter_of_a_torus_is_half_of_each_axis() -> None:
    unit = {"kind": "bare", "accelerators": 4}
    facts = topology_facts(topology(16, {"kind": "torus", "shape": [8, 8]}, unit))
    assert facts.switches_passed == 1 + 4 + 4


def test_cables_count_once_for_both_directions() -> None:
    facts = topology_facts(topology(8, TWO_TIERS))
    found = {(cable.ends, cable.count, cable.bandwidth) for cable in facts.unit_cables}
    assert ("accelerator - switch", 4, 300 * GB) in found
    assert [(cable.ends, cable.count) for cable in facts.port_cables] == [("port - tier 1", 32)]
    assert sum(cable.count for cable in facts.fabric_cables) == 16


def test_links_that_have_failed_count_as_absent() -> None:
    sound = topology(8, TWO_TIERS)
    up = [
        n
        for n in range(sound.first_fabric, sound.links)
        if sound.link_name(n).startswith("leaf0 ->")
    ]
    halved = replace(sound, changed=tuple((link, 0.0) for link in up[:4]))
    assert topology_facts(halved).tiers[0].oversubscription == pytest.approx(4.0)
    assert topology_facts(halved).half == pytest.approx(4 * NIC, rel=1e-6)
