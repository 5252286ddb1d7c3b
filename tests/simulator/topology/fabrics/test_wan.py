from __future__ import annotations

from typing import Any

import pytest

from simulator.errors import InputError
from simulator.topology.context import Context
from tests.simulator.topology.fabrics.cases import (
    GB,
    NIC,
    bisection,
    cut,
    fabric,
    islands,
    refused,
    tiers,
    uplinks_of,
)

TREE = {"kind": "fat-tree", "tiers": tiers({"joins": 2}, {})}
FLAT = {"kind": "flat"}


def site(name: str, units: int, inside: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"name": name, "units": units, "fabric": inside, **keys}


def link(one: str, other: str, bandwidth: str = "10 GB/s") -> dict[str, Any]:
    return {"ends": [one, other], "bandwidth": bandwidth, "latency": "10 ms"}


TWO: dict[str, Any] = {
    "site": [site("east", 4, TREE), site("west", 4, FLAT)],
    "link": [link("east", "west")],
}


def test_two_sites_have_the_bandwidth_of_the_link_between_them() -> None:
    assert bisection(fabric("wan", 8, 1, **TWO)) == 10 * GB


def test_a_site_is_as_it_would_be_alone() -> None:
    built = fabric("wan", 8, 1, **TWO)
    assert (cut(built, [0, 1], [2, 3]), cut(built, [4, 5], [6, 7])) == (2 * NIC, 2 * NIC)


def test_switches_have_the_name_of_their_site_and_units_stand_in_order() -> None:
    built = fabric("wan", 8, 1, **TWO)
    names = [built.graph.devices[switch] for switch in built.attachment.ravel()]
    assert names == ["east/leaf0"] * 2 + ["east/leaf1"] * 2 + ["west/switch"] * 4


def test_the_gateway_is_cabled_to_the_spines_and_to_the_other_gateway() -> None:
    built = fabric("wan", 8, 1, **TWO)
    ends = ["east/spine0", "east/spine1", "west/gateway"]
    assert uplinks_of(built, "east/gateway") == ends


def test_only_the_long_link_takes_time() -> None:
    built = fabric("wan", 8, 1, **TWO)
    late = [built.graph.link_name(int(place)) for place in built.graph.latency.nonzero()[0]]
    assert late == ["east/gateway -> west/gateway", "west/gateway -> east/gateway"]


def test_two_long_links_of_a_site_do_not_hinder_each_other_in_it() -> None:
    names = ["a", "b", "c"]
    sites = [site(name, 2, FLAT) for name in names]
    built = fabric("wan", 6, 1, site=sites, link=[link("a", "b"), link("a", "c", "20 GB/s")])
    assert (cut(built, [0, 1], [2, 3, 4, 5]), islands(built)) == (30 * GB, 1)


def test_a_gateway_can_be_cabled_to_named_switches() -> None:
    ring = {"kind": "torus", "shape": [4]}
    sites = [site("east", 4, ring, gateway=["r2"]), site("west", 4, FLAT)]
    built = fabric("wan", 8, 1, **{**TWO, "site": sites})
    assert uplinks_of(built, "east/gateway") == ["east/r2", "west/gateway"]


def test_a_fabric_without_a_highest_switch_needs_a_named_one() -> None:
    ring = {"kind": "torus", "shape": [4]}
    sites = [site("east", 4, ring), site("west", 4, FLAT)]
    (problem,) = refused("wan", 8, 1, **{**TWO, "site": sites})
    assert (problem.key, '["r0"]' in problem.fix) == ("fabric.site.0.gateway", True)


def test_a_failed_switch_of_a_site_is_named_with_its_site() -> None:
    built = fabric("wan", 8, 1, **TWO, failed=["east/spine1"])
    assert uplinks_of(built, "east/gateway") == ["east/spine0", "west/gateway"]


def test_all_that_is_wrong_at_all_sites_is_said_at_once() -> None:
    sites = [site("a", 3, FLAT), site("a", 4, {"kind": "flat", "reduces": True})]
    problems = refused("wan", 8, 1, site=sites, link=[link("a", "z")])
    assert [problem.key for problem in problems] == [
        "fabric.site",
        "fabric.link[0]",
        "fabric.site",
        "fabric.site.1.fabric.reduces",
    ]


def test_a_link_from_a_site_to_itself_is_refused() -> None:
    (problem,) = refused("wan", 8, 1, **{**TWO, "link": [link("east", "east")]})
    assert problem.key == "fabric.link[0]"


def test_what_no_site_can_know_is_said_once() -> None:
    with pytest.raises(InputError) as caught:
        fabric("wan", 8, 1, Context(), **TWO)
    assert len({problem.key for problem in caught.value.problems}) == len(caught.value.problems)
    assert {problem.key for problem in caught.value.problems} >= {"nic.bandwidth"}


def test_what_cannot_be_built_at_a_site_is_said_with_its_key() -> None:
    odd = {"kind": "fat-tree", "tiers": tiers({"joins": 2, "oversubscription": 3.0}, {})}
    sites = [site("east", 4, odd), site("west", 4, odd)]
    problems = refused("wan", 8, 1, **{**TWO, "site": sites})
    assert [problem.key for problem in problems] == [
        "fabric.site.0.fabric.tiers.0.oversubscription",
        "fabric.site.1.fabric.tiers.0.oversubscription",
    ]


def test_wrong_keys_of_the_fabric_of_a_site_are_found_with_all_others() -> None:
    sites = [
        site("east", 0, {"kind": "fat-tree", "tiers": [{"radix": "x"}]}),
        site("west", 4, {"kind": "flt"}),
    ]
    with pytest.raises(InputError) as caught:
        fabric("wan", 8, 1, **{**TWO, "site": sites})
    assert [problem.key for problem in caught.value.problems] == [
        "site.0.units",
        "site.0.fabric.tiers.0.radix",
        "site.1.fabric",
    ]
