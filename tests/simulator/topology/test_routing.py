"""Routes of known machines by hand, and what holds of routes on every kind of topology."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simulator.errors import InputError
from simulator.topology.registry import FABRICS, UNITS
from simulator.topology.routing import Router, Spreading
from simulator.topology.topology import Topology
from tests.simulator.topology.machines import UNITS_BUILT, built, smallest, table
from tests.simulator.topology.routes.oracle import asked_surplus, surplus

PAIRS = [(unit, fabric) for unit in UNITS for fabric in FABRICS]
pairs = pytest.mark.parametrize(("unit", "fabric"), PAIRS, ids="-".join)
TWO_TIERS = [{"joins": 2, "uplinks": 2}, {"switches": 2}]


def named(router: Router, source: int, target: int) -> dict[str, float]:
    """Return the share of each link of a route by its name, to nine digits."""
    name = router.topology.link_name
    return {name(link): round(share, 9) for link, share in router.route(source, target)}


def everyone_to_everyone(topology: Topology) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a message from each accelerator to each, of different sizes."""
    source, target = (ends.ravel() for ends in np.indices((topology.size, topology.size)))
    return source, target, 1.0 + np.arange(len(source)) % 7


def failed(topology: Topology, *names: str) -> Topology:
    """Return a topology whose links between devices of these names have failed."""
    links = {topology.link_name(link): link for link in range(topology.links)}
    return replace(topology, changed=tuple((links[name], 0.0) for name in names))


@pairs
@pytest.mark.parametrize("relay", [True, False])
@pytest.mark.parametrize("spreading", [Spreading.IDEAL, Spreading.HASH])
def test_what_devices_take_in_they_pass_on(
    unit: str, fabric: str, relay: bool, spreading: Spreading
) -> None:
    topology = built(smallest(unit, fabric), UNITS_BUILT)
    sent = everyone_to_everyone(topology)
    loads = Router(topology, relay=relay, spreading=spreading).loads(*sent)
    assert np.allclose(surplus(topology, loads), asked_surplus(topology, *sent))


@pairs
@pytest.mark.parametrize("spreading", [Spreading.IDEAL, Spreading.HASH])
def test_loads_are_the_sum_of_what_each_message_loads(
    unit: str, fabric: str, spreading: Spreading
) -> None:
    topology = built(smallest(unit, fabric), UNITS_BUILT)
    router = Router(topology, spreading=spreading)
    source, target, weight = everyone_to_everyone(topology)
    expected = np.zeros(topology.links)
    for one, other, bytes_ in zip(source, target, weight, strict=True):
        for link, share in router.route(int(one), int(other)):
            expected[link] += bytes_ * share
    assert np.allclose(router.loads(source, target, weight), expected)


@pairs
def test_loads_add_up_to_bytes_times_hops(unit: str, fabric: str) -> None:
    topology = built(smallest(unit, fabric), UNITS_BUILT)
    router = Router(topology)
    source, target, weight = everyone_to_everyone(topology)
    hops = router.hops(source, target)
    assert router.loads(source, target, weight).sum() == pytest.approx(weight @ hops)


def rails(units: int = 4, *, relay: bool = True, meet: str = "spine") -> Router:
    """Return routes over a rail-optimised tree: 4 rails, pods of 2 units, 2 spines."""
    inside = {"kind": "rail-optimised", "tiers": TWO_TIERS, "rails_meet": meet}
    return Router(built(table({"kind": "nvswitch"}, inside), units), relay=relay)


def test_a_message_along_a_rail_passes_one_leaf() -> None:
    assert named(rails(), 1, 5) == {
        "node0/gpu1 -> node0/nic1": 1.0,
        "node0/nic1 -> leaf0.1": 1.0,
        "leaf0.1 -> node1/nic1": 1.0,
        "node1/nic1 -> node1/gpu1": 1.0,
    }


def test_a_message_to_another_rail_is_relayed_over_nvlink() -> None:
    assert named(rails(), 0, 5) == {
        "node0/gpu0 -> node0/nvswitch": 1.0,
        "node0/nvswitch -> node0/gpu1": 1.0,
        "node0/gpu1 -> node0/nic1": 1.0,
        "node0/nic1 -> leaf0.1": 1.0,
        "leaf0.1 -> node1/nic1": 1.0,
        "node1/nic1 -> node1/gpu1": 1.0,
    }


def test_without_relay_it_crosses_rails_at_the_spines() -> None:
    assert named(rails(relay=False), 0, 5) == {
        "node0/gpu0 -> node0/nic0": 1.0,
        "node0/nic0 -> leaf0.0": 1.0,
        "leaf0.0 -> spine0": 0.5,
        "leaf0.0 -> spine1": 0.5,
        "spine0 -> leaf0.1": 0.5,
        "spine1 -> leaf0.1": 0.5,
        "leaf0.1 -> node1/nic1": 1.0,
        "node1/nic1 -> node1/gpu1": 1.0,
    }


def test_rails_that_never_meet_are_reached_by_another_port_of_the_node() -> None:
    inside = {"kind": "rail-optimised", "tiers": [{}], "rails_meet": "never"}
    router = Router(built(table({"kind": "nvswitch"}, inside), 2), relay=False)
    assert [name for name in named(router, 0, 5) if "leaf" in name] == [
        "node0/nic1 -> leaf0.1",
        "leaf0.1 -> node1/nic1",
    ]


def test_pcie_relays_nothing() -> None:
    """A message over PCIe to another NIC gains nothing over the own one."""
    inside = {"kind": "rail-optimised", "tiers": TWO_TIERS}
    router = Router(built(table({"kind": "pcie"}, inside), 4))
    assert "node0/nic0 -> leaf0.0" in named(router, 0, 5)


def test_a_failed_nic_is_avoided_by_the_next_one() -> None:
    broken = failed(rails().topology, "node0/nic1 -> leaf0.1")
    route = named(Router(broken), 1, 5)
    assert "node0/nic1 -> leaf0.1" not in route
    assert route["leaf0.1 -> node1/nic1"] == 1.0


def test_a_failed_cable_of_the_receiver_is_avoided_by_its_next_nic() -> None:
    broken = failed(rails().topology, "leaf0.1 -> node1/nic1")
    route = named(Router(broken), 1, 5)
    assert [name for name in route if name.endswith("-> node1/gpu1")] == [
        "node1/nvswitch -> node1/gpu1"
    ]


def test_a_failed_spine_link_leaves_all_to_the_others() -> None:
    router = rails(relay=False)
    route = named(Router(failed(router.topology, "leaf0.0 -> spine0"), relay=False), 0, 5)
    assert (route["leaf0.0 -> spine1"], "leaf0.0 -> spine0" in route) == (1.0, False)


def test_a_failed_nvlink_goes_round_by_the_nics() -> None:
    topology = built(table({"kind": "mesh"}, {"kind": "flat"}), 2)
    broken = failed(topology, "node0/gpu0 -> node0/gpu1")
    assert named(Router(broken), 0, 1) == {
        "node0/gpu0 -> node0/gpu2": 0.5,
        "node0/gpu2 -> node0/gpu1": 0.5,
        "node0/gpu0 -> node0/gpu3": 0.5,
        "node0/gpu3 -> node0/gpu1": 0.5,
    }
    assert len(Router(broken).route(4, 5)) == 1


def test_who_cannot_be_reached_is_named_with_what_has_failed() -> None:
    topology = built(table({"kind": "bare", "accelerators": 1}, {"kind": "flat"}), 3)
    broken = failed(topology, "switch -> node2/chip0")
    with pytest.raises(InputError) as caught:
        Router(broken).loads(np.array([0, 1, 0]), np.array([2, 2, 1]), np.ones(3))
    assert [str(problem) for problem in caught.value.problems] == [
        "small: node0/chip0 cannot reach node2/chip0; so it is with 1 more pair "
        "(found failed: switch -> node2/chip0)\n"
        "    fix: leave one of these links whole, or place no rank on what is cut off"
    ]


def test_who_cannot_be_reached_is_told_by_the_key_of_the_scenario() -> None:
    topology = built(table({"kind": "bare", "accelerators": 1}, {"kind": "flat"}), 3)
    broken = failed(topology, "switch -> node2/chip0")
    router = Router(broken, asked=("run.toml", "cluster.network.changed"))
    with pytest.raises(InputError) as caught:
        router.loads(np.array([0]), np.array([2]), np.ones(1))
    assert str(caught.value.problems[0]).startswith(
        "run.toml: cluster.network.changed: node0/chip0 cannot reach node2/chip0 on the topology "
        "'small' (found failed"
    )


def test_units_that_no_fabric_joins_do_not_reach_each_other() -> None:
    alone = built(table({"kind": "nvswitch"}))
    with pytest.raises(InputError, match="add a fabric that joins the units"):
        Router(replace(alone, units=2)).hops(np.array([0]), np.array([5]))


def test_nvlink_comes_before_pcie_and_an_accelerator_forwards() -> None:
    """a - b - c by NVLink (0.04 s/GB twice) and a - c over a PCIe switch (0.0625 s/GB twice)."""
    cables = [
        ("a", "b", 25),
        ("b", "c", 25),
        ("a", "pcie", 16),
        ("b", "pcie", 16),
        ("c", "pcie", 16),
    ]
    unit = {
        "kind": "graph",
        "accelerators": ["a", "b", "c"],
        "switches": ["pcie"],
        "cable": [{"ends": [x, y], "bandwidth": f"{gb} GB/s"} for x, y, gb in cables],
    }
    router = Router(built(table(unit)))
    assert named(router, 0, 2) == {"node0/a -> node0/b": 1.0, "node0/b -> node0/c": 1.0}


def test_a_direct_link_comes_before_a_detour_that_is_twice_as_wide() -> None:
    """DGX-1V: GPU 0 and 2 have one link, and two of two links each over GPU 3."""
    router = Router(built(table({"kind": "mesh", "accelerators": 8, "links": "hybrid-cube-mesh"})))
    assert named(router, 0, 2) == {"node0/gpu0 -> node0/gpu2": 1.0}


def test_two_nics_of_one_accelerator_share_its_traffic() -> None:
    unit = {
        "kind": "graph",
        "accelerators": ["a"],
        "nics": ["north", "south"],
        "cable": [{"ends": ["a", nic], "bandwidth": "60 GB/s"} for nic in ("north", "south")],
    }
    router = Router(built(table(unit, {"kind": "flat"}), 2))
    assert [share for _, share in router.route(0, 1)] == [0.5] * 8


def test_latency_is_that_of_the_links_on_the_way() -> None:
    """NVLink 2 us in two halves; NIC to NIC 4 us in two halves; PCIe none."""
    router = rails()
    there = np.array([1, 5, 4, 0])
    latency = router.latency(np.zeros(4, dtype=np.intp), there)
    assert latency == pytest.approx([2e-6, 6e-6, 4e-6, 0.0])
    assert router.hops(np.zeros(4, dtype=np.intp), there) == pytest.approx([2, 6, 4, 0])


def test_one_node_of_a_rail_oversubscribed_twice_is_loaded_twice_as_much() -> None:
    """Two units a leaf and one uplink: both send across, so that it carries both."""
    tiers = [{"joins": 2, "oversubscription": 2}, {}]
    inside = {"kind": "rail-optimised", "tiers": tiers}
    topology = built(table({"kind": "nvswitch"}, inside), 4)
    source = np.array([0, 4])
    loads = Router(topology).loads(source, source + 8, np.ones(2))
    up = [x for x in range(topology.first_fabric, topology.links) if loads[x] > 0]
    worst = (loads[up] / topology.capacity[up]).max()
    assert worst == pytest.approx(2 / 45e9)


@pytest.mark.parametrize(
    ("unit", "fabric", "count"),
    [("nvswitch", {"kind": "rail-optimised", "tiers": TWO_TIERS}, 4)],
)
def test_all_units_without_damage_are_of_one_kind(
    unit: str, fabric: dict[str, object], count: int
) -> None:
    topology = built(table({"kind": unit}, fabric), count)
    whole = Router(topology)._units
    hurt = Router(failed(topology, "node3/nic0 -> leaf1.0"))._units
    assert (len(whole.sides), len(hurt.sides)) == (1, 2)
