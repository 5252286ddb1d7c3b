"""Rules that devices and cables must keep, each broken once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simulator.topology.checks import capacity_problems, reach_problems, tree_problems
from simulator.topology.topology import Topology
from tests.simulator.topology.machines import built, table


def small() -> Topology:
    return built(table({"kind": "nvswitch"}, {"kind": "flat"}), 2)


def with_rate(rate: float) -> Topology:
    """Return a topology whose first link has another rate."""
    topology = small()
    graph = topology.unit.graph
    bandwidth = np.where(np.arange(len(graph)) == 0, rate, graph.bandwidth)
    unit = replace(topology.unit, graph=replace(graph, bandwidth=bandwidth))
    return replace(topology, unit=unit)


def test_links_without_bandwidth_are_named_in_each_unit() -> None:
    assert [str(problem) for problem in capacity_problems(with_rate(0.0))] == [
        f"node{unit}/gpu0 -> node{unit}/nvswitch: a link has a bandwidth greater than 0 "
        "(found 0 bytes/s)\n    fix: give it one, or leave the cable out"
        for unit in range(2)
    ]


def test_links_of_less_than_nothing_or_no_number_are_named() -> None:
    assert (
        len(capacity_problems(with_rate(-1.0))),
        len(capacity_problems(with_rate(float("nan")))),
    ) == (2, 2)


def test_a_failed_link_may_carry_nothing() -> None:
    assert capacity_problems(replace(small(), changed=((3, 0.0),))) == []


def test_accelerators_behind_failed_links_are_counted() -> None:
    topology = small()
    dead = [link for link in range(topology.links) if "node1/gpu" in topology.link_name(link)]
    (problem,) = reach_problems(replace(topology, changed=tuple((link, 0.0) for link in dead)))
    assert str(problem) == (
        "fabric: nothing joins these accelerators (4) to node0/gpu0 "
        "(found node1/gpu0, node1/gpu1, node1/gpu2, node1/gpu3)\n"
        "    fix: add the cables that join them, or leave the devices out"
    )


def test_a_tree_has_no_problem() -> None:
    assert tree_problems({"a": "root", "b": "a", "c": "a"}, ["root"], "unit.switch") == []


def test_only_devices_of_the_circle_are_named() -> None:
    """c hangs on the circle of a and b, and is no part of it."""
    above = {"a": "b", "b": "a", "c": "a"}
    found = [problem.found for problem in tree_problems(above, ["root"], "unit.switch")]
    assert found == ["a -> b -> a", "b -> a -> b"]


def test_a_device_that_hangs_on_itself_is_a_circle() -> None:
    (problem,) = tree_problems({"a": "a"}, ["root"], "unit.switch")
    assert problem.found == "a -> a"
