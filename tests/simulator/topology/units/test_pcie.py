"""Trees of PCIe by hand: what hangs where, and which NIC is nearest."""

from __future__ import annotations

from typing import Any

import pytest

from simulator.topology.topology import Unit
from tests.simulator.topology.machines import CONTEXT, built, problems_of, table

TWO_SOCKETS: dict[str, Any] = {
    "kind": "pcie",
    "accelerators": 4,
    "sockets": 2,
    "socket_bandwidth": "40 GB/s",
    "switch": [
        {"name": "left", "above": "socket0", "accelerators": [0, 1], "nics": [1]},
        {"name": "right", "above": "socket1", "accelerators": [2, 3], "nics": [0]},
    ],
}


def unit(**keys: Any) -> Unit:
    return built(table(TWO_SOCKETS | {"nic_bandwidth": "60 GB/s"} | keys)).unit


def cables(found: Unit) -> set[str]:
    return {found.graph.link_name(link) for link in range(0, len(found.graph), 2)}


def wrong(**keys: Any) -> list[str]:
    return problems_of(table(TWO_SOCKETS | keys))


def test_slots_hang_on_their_switch_and_the_rest_on_sockets() -> None:
    assert cables(unit()) == {
        "gpu0 -> left",
        "gpu1 -> left",
        "gpu2 -> right",
        "gpu3 -> right",
        "nic1 -> left",
        "nic0 -> right",
        "nic2 -> socket1",
        "nic3 -> socket1",
        "left -> socket0",
        "right -> socket1",
        "socket0 -> socket1",
    }


def test_the_nearest_nic_is_the_one_below_the_same_switch() -> None:
    assert unit().affinity.tolist() == [1, 1, 0, 0]


def test_accelerators_of_one_socket_share_its_nics_evenly() -> None:
    found = built(table({"kind": "pcie", "accelerators": 4})).unit
    assert found.affinity.tolist() == [0, 1, 2, 3]


def test_sockets_are_joined_by_their_own_bandwidth() -> None:
    graph = unit().graph
    names = [graph.link_name(link) for link in range(len(graph))]
    assert graph.bandwidth[names.index("socket1 -> socket0")] == 40e9


def test_a_message_to_the_other_socket_takes_five_links() -> None:
    graph = unit().graph
    way = ["gpu0 -> left", "left -> socket0", "socket0 -> socket1"]
    way += ["socket1 -> right", "right -> gpu3"]
    names = [graph.link_name(link) for link in range(len(graph))]
    latency = sum(graph.latency[names.index(name)] for name in way)
    assert latency == pytest.approx(5 / 2 * CONTEXT.scale_up_latency)


def test_a_bridge_joins_two_accelerators_directly() -> None:
    found = unit(bridge=[[0, 3]], bridge_bandwidth="100 GB/s")
    assert "gpu0 -> gpu3" in cables(found)


def test_a_switch_may_hang_on_a_switch() -> None:
    lower = {"name": "lower", "above": "left", "nics": [2, 3]}
    found = unit(switch=[*TWO_SOCKETS["switch"], lower])
    assert {"lower -> left", "nic2 -> lower", "nic3 -> lower"} <= cables(found)


def test_switches_that_hang_on_each_other_are_a_circle() -> None:
    circle = [{"name": "left", "above": "right"}, {"name": "right", "above": "left"}]
    assert wrong(switch=circle)[0] == (
        "net.toml: unit.switch: the way up goes round in a circle; a tree ends at a root "
        "(found left -> right -> left)\n    fix: hang one of them below socket0 or socket1"
    )


def test_a_switch_on_nothing_that_there_is_names_the_nearest() -> None:
    assert wrong(switch=[{"name": "left", "above": "soket1"}]) == [
        "net.toml: unit.switch[0].above: no such device (found 'soket1')\n"
        "    fix: did you mean 'socket1'?"
    ]


def test_an_accelerator_in_two_slots_is_said_for_both() -> None:
    twice = [
        {"name": "left", "above": "socket0", "accelerators": [0]},
        {"name": "right", "above": "socket1", "accelerators": [0]},
    ]
    assert [line.split(": ")[1] for line in wrong(switch=twice)] == [
        "unit.switch[0].accelerators",
        "unit.switch[1].accelerators",
    ]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    found = problems_of(
        table(
            {
                "kind": "pcie",
                "sockets": 2,
                "switch": [{"name": "socket0", "above": "socket1", "accelerators": [4]}],
                "bridge": [[0, 0], [1, 2], [2, 1], [0, 9]],
                "affinity": [0, 7],
            }
        )
    )
    assert [line.partition("net.toml: ")[2].partition(": ")[0] for line in found] == [
        "unit.sockets",
        "unit.switch",
        "unit.switch[0].accelerators",
        "unit.bridge[0]",
        "unit.bridge[2]",
        "unit.bridge[3]",
        "unit.socket_bandwidth",
        "unit.bridge_bandwidth",
        "unit.affinity",
        "unit.affinity[1]",
    ]
