from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.topology.checks import capacity_problems
from simulator.topology.context import Context
from simulator.topology.topology import Topology
from tests.simulator.topology.fabrics.cases import (
    NIC,
    bisection,
    cables,
    cut,
    diameter,
    fabric,
    islands,
    nics,
    refused,
    tiers,
    uplinks_of,
)

POD = {"joins": 2}


def test_a_pod_has_one_leaf_a_rail_and_each_port_is_on_that_of_its_rail() -> None:
    built = fabric("rail-optimised", 4, 3, tiers=tiers(POD, {}))

    names = [[built.graph.devices[leaf] for leaf in unit] for unit in built.attachment]
    pods = [["leaf0.0", "leaf0.1", "leaf0.2"]] * 2 + [["leaf1.0", "leaf1.1", "leaf1.2"]] * 2
    assert names == pods


POD_OF_64 = {"joins": 32, "radix": 64}


@pytest.mark.parametrize(
    ("scalable_units", "leaves", "spines", "cores"),
    [
        (2, 16, 8, 0),
        (4, 32, 16, 0),
        (8, 64, 32, 0),
        (16, 128, 128, 64),
        (32, 256, 256, 128),
        (64, 512, 512, 256),
    ],
)
def test_a_superpod_has_the_switches_and_cables_of_its_reference_architecture(
    scalable_units: int, leaves: int, spines: int, cores: int
) -> None:
    # 32 nodes of 8 NICs a scalable unit, switches of 64 ports; each tier has a cable for each NIC.
    # Source: docs.nvidia.com/dgx-superpod, reference architecture of the DGX B200, "DGX SuperPOD
    # Architecture", table of larger component counts.
    above = [{"radix": 64}] * (2 if cores else 1)

    built = fabric("rail-optimised", 32 * scalable_units, 8, tiers=[POD_OF_64, *above])

    counts = Counter(name.rstrip(".0123456789") for name in built.graph.devices)
    assert (counts["leaf"], counts["spine"], counts["core"]) == (leaves, spines, cores)
    assert cables(built) == 256 * scalable_units * len(above)


def test_2048_nodes_of_8_nics_use_every_port_of_their_switches() -> None:
    given = tiers(POD_OF_64, {"radix": 64}, {"radix": 64})

    built = fabric("rail-optimised", 2048, 8, tiers=given)

    ports = np.bincount(built.graph.source) + np.bincount(built.attachment.ravel(), minlength=1280)
    assert ports.tolist() == [64] * 1280


def test_a_leaf_has_several_cables_to_each_of_few_spines() -> None:
    built = fabric("rail-optimised", 127, 8, tiers=tiers(POD_OF_64, {"radix": 64}))
    assert uplinks_of(built, "leaf3.5").count("spine7") == 2


def test_bisection_between_full_pods_is_that_of_their_ports() -> None:
    built = fabric("rail-optimised", 8, 4, tiers=tiers({"joins": 4}, {}))
    assert bisection(built) == 16 * NIC


def test_oversubscription_divides_the_bisection() -> None:
    pod = {"joins": 4, "oversubscription": 2.0}
    built = fabric("rail-optimised", 8, 4, tiers=tiers(pod, {}))
    assert bisection(built) == 8 * NIC


def test_rails_that_meet_at_the_spine_reach_each_other_in_two_links() -> None:
    built = fabric("rail-optimised", 4, 4, tiers=tiers(POD, {}))
    assert (diameter(built), islands(built)) == (2, 1)


def test_rail_groups_have_spines_of_their_own_and_meet_at_the_core() -> None:
    given = tiers({"joins": 2}, {"joins": 2}, {})

    built = fabric("rail-optimised", 8, 4, tiers=given, rails_meet="top")

    assert uplinks_of(built, "leaf1.3") == ["spine0.3", "spine0.7"]
    assert (diameter(built), islands(built)) == (4, 1)


def test_rail_groups_lose_no_bandwidth_in_their_rail() -> None:
    given = tiers({"joins": 2}, {"joins": 2}, {})
    built = fabric("rail-optimised", 8, 4, tiers=given, rails_meet="top")
    assert bisection(built) == 16 * NIC


def test_rails_meet_at_a_core_that_is_cut_into_planes() -> None:
    # Spines with 4 uplinks each reach 8 cores in two planes only; they have 2 cables down.
    given = tiers({"joins": 4}, {"joins": 2, "uplinks": 4}, {"switches": 8})

    built = fabric("rail-optimised", 16, 4, tiers=given, rails_meet="top")

    first = [set(uplinks_of(built, f"spine0.{spine}")[2:]) for spine in range(8)]
    assert (
        first
        == [{f"core{core}" for core in range(0, 8, 2)}] * 4
        + [{f"core{core}" for core in range(1, 8, 2)}] * 4
    )
    assert islands(built) == 1


def test_rail_only_keeps_each_rail_apart() -> None:
    one = fabric("rail-optimised", 4, 4, tiers=tiers({}), rails_meet="never")
    two = fabric("rail-optimised", 4, 4, tiers=tiers(POD, {}), rails_meet="never")
    assert (islands(one), islands(two)) == (4, 4)


def test_rail_only_joins_all_pods_in_each_rail() -> None:
    built = fabric("rail-optimised", 8, 4, tiers=tiers({"joins": 4}, {}), rails_meet="never")
    assert bisection(built) == 16 * NIC


def test_more_ports_than_rails_take_turns() -> None:
    built = fabric("rail-optimised", 2, 4, rails=2, tiers=tiers(POD, {}))
    assert built.attachment.tolist() == [[0, 1, 0, 1]] * 2


def test_a_rack_of_several_nodes_has_the_rails_of_one() -> None:
    context = Context(nics=4, nic_bandwidth=NIC, nic_latency=4e-6)
    built = fabric("rail-optimised", 2, 72, context, tiers=tiers(POD, {}))
    assert np.bincount(built.attachment.ravel(), minlength=4)[:4].tolist() == [36] * 4


def test_a_failed_leaf_takes_its_rail_out_of_its_pod_alone() -> None:
    built = fabric("rail-optimised", 4, 2, tiers=tiers(POD, {}), failed=["leaf1.0"])
    assert (built.port_bandwidth / NIC).tolist() == [[1, 1], [1, 1], [0, 1], [0, 1]]


def test_ports_of_a_failed_leaf_are_no_mistake() -> None:
    built = fabric("rail-optimised", 4, 2, tiers=tiers(POD, {}), failed=["leaf1.0"])
    topology = Topology(title="", unit=nics(2), units=4, fabric=built)
    assert capacity_problems(topology) == []


def test_rails_that_do_not_divide_the_ports_are_refused_with_the_nearest() -> None:
    (problem,) = refused("rail-optimised", 4, 8, rails=5, tiers=tiers(POD, {}))
    assert (problem.key, problem.fix) == ("fabric.rails", "rails = 4")


def test_rails_of_different_speed_are_refused() -> None:
    unit = replace(nics(2), port_bandwidth=np.array([NIC, NIC / 2]))
    (problem,) = refused("rail-optimised", 4, unit, tiers=tiers(POD, {}))
    assert problem.key == "unit"


def test_spines_that_do_not_divide_over_rails_are_refused_with_the_nearest() -> None:
    given: dict[str, Any] = {"tiers": tiers(POD, {"switches": 7}), "rails_meet": "never"}
    (problem,) = refused("rail-optimised", 4, 4, **given)
    assert (problem.key, problem.fix) == ("fabric.tiers.1.switches", "switches = 8")


def test_leaves_of_different_rails_cannot_meet_without_a_tier_above() -> None:
    with pytest.raises(InputError, match='rails_meet = "never"'):
        fabric("rail-optimised", 4, 4, tiers=tiers({}))


@given(
    units=st.integers(1, 30),
    rails=st.sampled_from([1, 2, 4]),
    turns=st.integers(1, 2),
    lower=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 6)), min_size=1, max_size=2),
    meet=st.sampled_from(["spine", "top", "never"]),
)
def test_every_port_reaches_every_other_where_rails_meet_and_else_its_rail(
    units: int, rails: int, turns: int, lower: list[tuple[int, int]], meet: str
) -> None:
    given = [*({"joins": joins, "uplinks": up} for joins, up in lower), {"radix": 4096}]

    built = fabric(
        "rail-optimised", units, rails * turns, rails=rails, rails_meet=meet, tiers=given
    )

    assert islands(built) == (rails if meet == "never" else 1)


@given(
    rails=st.sampled_from([2, 4]), joins=st.integers(1, 4), meet=st.sampled_from(["spine", "top"])
)
def test_pods_never_hinder_each_other_at_one_to_one(rails: int, joins: int, meet: str) -> None:
    given = tiers({"joins": joins}, {"joins": 2}, {})

    built = fabric("rail-optimised", 4 * joins, rails, rails_meet=meet, tiers=given)

    one, other = range(2 * joins), range(2 * joins, 4 * joins)
    assert cut(built, one, other) == 2 * joins * rails * NIC
