from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.topology.context import Context
from tests.simulator.topology.fabrics.cases import (
    GB,
    NIC,
    bisection,
    cables,
    cut,
    diameter,
    fabric,
    islands,
    refused,
    tiers,
    uplinks_of,
)


@pytest.mark.parametrize("radix", [4, 6, 8])
def test_three_tiers_of_radix_k_join_k_cubed_over_four_ports_without_contention(radix: int) -> None:
    hosts = radix**3 // 4

    built = fabric("fat-tree", hosts, 1, tiers=tiers(*[{"radix": radix}] * 3))

    counts = (len(built.graph.devices), cables(built), diameter(built), bisection(built) / NIC)
    assert counts == (5 * radix**2 // 4, radix**3 // 2, 4, hosts / 2)


def test_each_switch_of_a_full_k_ary_tree_has_k_cables() -> None:
    built = fabric("fat-tree", 54, 1, tiers=tiers(*[{"radix": 6}] * 3))

    used = np.bincount(built.graph.source, minlength=45)
    used += np.bincount(built.attachment.ravel(), minlength=45)

    assert used.tolist() == [6] * 45


def test_two_tiers_have_as_many_spines_as_a_leaf_has_uplinks() -> None:
    # 4 units of 2 ports fill half of a leaf; 4 leaves with 8 uplinks each fill 2 spines.
    built = fabric("fat-tree", 16, 2, tiers=tiers({"joins": 4, "radix": 16}, {"radix": 16}))

    assert (built.graph.devices, cables(built), bisection(built)) == (
        ("leaf0", "leaf1", "leaf2", "leaf3", "spine0", "spine1"),
        32,
        16 * NIC,
    )


def test_all_ports_of_a_unit_are_on_one_leaf() -> None:
    built = fabric("fat-tree", 4, 3, tiers=tiers({"joins": 2}, {}))
    assert built.attachment.tolist() == [[0] * 3, [0] * 3, [1] * 3, [1] * 3]


def test_without_a_radix_each_leaf_has_one_cable_to_each_spine() -> None:
    built = fabric("fat-tree", 4, 2, tiers=tiers({"joins": 2}, {}))
    assert uplinks_of(built, "leaf1") == ["spine0", "spine1", "spine2", "spine3"]


@pytest.mark.parametrize("ratio", [1.0, 2.0, 4.0, 1.6, 0.5])
def test_oversubscription_divides_the_bisection(ratio: float) -> None:
    leaf = {"joins": 8, "oversubscription": ratio}

    built = fabric("fat-tree", 16, 1, tiers=tiers(leaf, {}))

    assert bisection(built) == pytest.approx(8 * NIC / max(ratio, 1.0))


def test_oversubscription_counts_the_speed_of_uplinks() -> None:
    # 8 ports of 50 GB/s over uplinks of 100 GB/s: 2 of them are 2:1.
    leaf = {"joins": 8, "oversubscription": 2.0, "bandwidth": "800 Gbps"}
    built = fabric("fat-tree", 16, 1, tiers=tiers(leaf, {}))
    assert built.graph.bandwidth.tolist() == [100 * GB] * 8


def test_oversubscription_of_each_tier_multiplies() -> None:
    leaf, spine = {"joins": 4, "oversubscription": 2.0}, {"joins": 2, "oversubscription": 2.0}

    built = fabric("fat-tree", 32, 1, tiers=tiers(leaf, spine, {}))

    within = cut(built, range(4), range(4, 8))
    assert (within, bisection(built)) == (4 * NIC / 2, 16 * NIC / 4)


def test_the_last_leaf_has_the_units_that_remain_and_all_its_uplinks() -> None:
    built = fabric("fat-tree", 5, 1, tiers=tiers({"joins": 2}, {}))

    filled = np.bincount(built.attachment.ravel()).tolist()

    assert (filled, len(uplinks_of(built, "leaf2"))) == ([2, 2, 1], 2)


def test_cables_that_do_not_divide_over_spines_differ_by_one_at_most() -> None:
    leaf = {"joins": 4, "uplinks": 5}

    built = fabric("fat-tree", 12, 1, tiers=tiers(leaf, {"switches": 4}))

    assert [len(uplinks_of(built, f"spine{spine}")) for spine in range(4)] == [4, 4, 4, 3]


def test_links_of_the_fabric_have_the_efficiency_of_nics() -> None:
    context = Context(nic_bandwidth=NIC, nic_latency=4e-6, nic_efficiency=0.8)
    built = fabric("fat-tree", 4, 1, context, tiers=tiers({"joins": 2}, {}))
    assert {*built.graph.bandwidth, *built.port_bandwidth.ravel()} == {40 * GB}


def test_the_latency_of_a_nic_is_that_of_the_whole_way() -> None:
    built = fabric("fat-tree", 4, 1, tiers=tiers({"joins": 2, "latency": "1 us"}, {}))
    assert (built.port_latency[0, 0], built.graph.latency[0]) == (2e-6, 1e-6)


def test_a_failed_spine_has_no_links_and_costs_its_share() -> None:
    whole = {"tiers": tiers({"joins": 4}, {})}

    built = fabric("fat-tree", 8, 1, failed=["spine1"], **whole)

    assert (uplinks_of(built, "spine1"), bisection(built)) == ([], 3 * NIC)


def test_a_failed_leaf_that_leaves_units_alone_is_refused_with_their_numbers() -> None:
    (problem,) = refused("fat-tree", 4, 1, failed=["leaf1"], tiers=tiers({"joins": 2}, {}))
    assert problem.found == "2 units without a port, the first 2, 3"


def test_each_failed_switch_that_is_not_there_is_named() -> None:
    failed = ["spine9", "leef0"]
    problems = refused("fat-tree", 4, 1, failed=failed, tiers=tiers({"joins": 2}, {}))
    assert [problem.key for problem in problems] == ["fabric.failed.0", "fabric.failed.1"]
    assert problems[1].fix == "did you mean 'leaf0'?"


def test_switches_that_reduce_are_known_to() -> None:
    built = fabric("fat-tree", 4, 1, reduces=True, tiers=tiers({"joins": 2}, {}))
    assert built.reduces


def test_a_ratio_that_no_number_of_cables_has_is_refused_with_the_nearest() -> None:
    leaf = {"joins": 4, "oversubscription": 1.5}
    (problem,) = refused("fat-tree", 8, 8, tiers=tiers(leaf, {}))
    assert (problem.key, problem.fix) == (
        "fabric.tiers.0.oversubscription",
        "uplinks = 21 (1.52380952:1) or 22 (1.45454545:1), in place of oversubscription",
    )


def test_a_switch_with_too_few_ports_is_refused_with_those_it_needs() -> None:
    leaf = {"joins": 4, "radix": 48}
    (problem,) = refused("fat-tree", 8, 8, tiers=tiers(leaf, {}))
    assert (problem.key, problem.rule, problem.fix) == (
        "fabric.tiers.0.radix",
        "a switch needs 32 ports down and 32 up",
        "radix = 64, or a smaller joins",
    )


def test_a_top_tier_that_cannot_join_all_is_refused() -> None:
    # 9 leaves of 4 uplinks each reach at most 4 spines, of 9 ports each.
    top = {"radix": 8}
    (problem,) = refused("fat-tree", 36, 1, tiers=tiers({"joins": 4}, top))
    assert (problem.key, problem.fix) == (
        "fabric.tiers.1.radix",
        "radix = 9, or more uplinks in the tier below",
    )


def test_a_refused_ratio_is_explained_by_switches_that_have_the_ports() -> None:
    # 4 leaves of 32 uplinks need 2 spines of 64 ports without uplinks, and more with any.
    given = tiers({"joins": 32}, {"joins": 4, "radix": 64, "oversubscription": 5.0}, {})
    (problem,) = refused("fat-tree", 128, 1, tiers=given)
    assert (problem.key, problem.fix) == (
        "fabric.tiers.1.oversubscription",
        "uplinks = 8 (5.33333333:1) or 9 (4.74074074:1), in place of oversubscription",
    )


def test_more_spines_than_uplinks_are_refused_with_the_nearest_number() -> None:
    leaf = {"joins": 4, "uplinks": 4}
    (problem,) = refused("fat-tree", 16, 1, tiers=tiers(leaf, {"switches": 6}))
    assert (problem.key, problem.fix) == ("fabric.tiers.1.switches", "switches = 4")


def test_a_tier_that_says_nothing_of_its_size_is_refused() -> None:
    (problem,) = refused("fat-tree", 16, 1, tiers=tiers({}, {}))
    assert problem.key == "fabric.tiers.0.joins"


def test_a_leaf_too_small_for_one_unit_is_refused() -> None:
    (problem,) = refused("fat-tree", 4, 8, tiers=tiers({"radix": 6}, {}))
    assert (problem.key, problem.fix) == ("fabric.tiers.0.radix", "radix = 16, or more")


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        (tiers({"joins": 2}, {"joins": 2}), "the last of the tiers joins all"),
        (tiers({"joins": 2, "switches": 2}, {}), "the first of the tiers has one leaf a group"),
        (tiers({"joins": 2, "uplinks": 2, "oversubscription": 1.0}, {}), "not both"),
    ],
)
def test_keys_that_contradict_each_other_are_refused(
    wrong: list[dict[str, object]], rule: str
) -> None:
    with pytest.raises(InputError, match=rule):
        fabric("fat-tree", 4, 1, tiers=wrong)


@given(
    units=st.integers(1, 40),
    ports=st.integers(1, 4),
    joins=st.lists(st.integers(1, 5), min_size=0, max_size=3),
    ratio=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_every_port_reaches_every_other_and_no_cable_is_lost(
    units: int, ports: int, joins: list[int], ratio: float
) -> None:
    lower = [{"joins": 2 * count, "oversubscription": ratio} for count in joins]

    built = fabric("fat-tree", units, 2 * ports, tiers=[*lower, {}])

    both = built.graph.source.reshape(-1, 2), built.graph.target.reshape(-1, 2)
    assert islands(built) == 1
    assert np.array_equal(both[0], both[1][:, ::-1])


@given(
    leaves=st.integers(2, 6),
    joins=st.integers(1, 8),
    ports=st.integers(1, 4),
    uplinks=st.integers(1, 16),
)
def test_bandwidth_between_full_leaves_is_that_of_their_ports_or_of_their_uplinks(
    leaves: int, joins: int, ports: int, uplinks: int
) -> None:
    leaf = {"joins": joins, "uplinks": uplinks}

    built = fabric("fat-tree", leaves * joins, ports, tiers=tiers(leaf, {}))

    one, other = range(joins), range(joins, 2 * joins)
    assert cut(built, one, other) == min(joins * ports, uplinks) * NIC
