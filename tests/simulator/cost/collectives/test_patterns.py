"""Who sends to whom: what every algorithm's pattern must do, and some patterns by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.collectives.pattern import Members, Traffic
from simulator.cost.collectives.registry import traffic_of
from simulator.cost.collectives.schemes import (
    binary_parents,
    binomial_scheme,
    double_tree_scheme,
    flood_scheme,
)
from simulator.cost.collectives.select import plan_collective
from simulator.cost.plan import CommPlan, LinkKind
from simulator.parallel.groups import Collective, GroupShape
from tests.simulator.cost.collectives.cases import CASES, TO_HOST, Case, named, plan
from tests.simulator.cost.collectives.machines import machine

BETWEEN = [case for case in CASES if case[0] != TO_HOST]
SWITCHES_REDUCE = {"nvls", "sharp"}
LATENT = {"gloo_broadcast"}
"""Wire bytes count payloads in sequence on a path, more than any one rank sends."""
SPARING = {
    (name, kind)
    for name in ("ring", "ring_bidirectional", "all_pairs")
    for kind in (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.REDUCE_SCATTER)
} | {
    ("torus_2d", Collective.ALL_REDUCE),
    ("parameter_server", Collective.ALL_REDUCE),
    ("pairwise", Collective.ALL_TO_ALL),
    ("chain", Collective.BROADCAST),
    ("chain", Collective.REDUCE),
    ("binomial", Collective.BROADCAST),
    ("binomial", Collective.REDUCE),
    ("gloo_broadcast", Collective.BROADCAST),
}
"""Those that send no byte in vain inside one domain."""


def block(group: GroupShape, groups: int = 1, gap: int = 0) -> Members:
    """Return groups one after another, whose ranks fill domains of `per_domain` one by one."""
    size = group.size
    ranks = np.arange(groups * size).reshape(groups, size) + gap
    return Members(accelerators=ranks, domain=np.arange(groups * size + gap) // group.per_domain)


def matrix(traffic: Traffic, size: int) -> np.ndarray:
    """Return (source, target) -> weight."""
    table = np.zeros((size, size))
    np.add.at(table, (traffic.source, traffic.target), traffic.weight)
    return table


def busiest(traffic: Traffic) -> float:
    sent = np.bincount(traffic.source, traffic.weight)
    received = np.bincount(traffic.target, traffic.weight)
    return float(max(sent.max(), received.max()))


def phases(case: Case, members: Members) -> list[tuple[LinkKind, float, Traffic]]:
    """Return the link, the wire bytes and the traffic of each phase, of a payload of 1."""
    made = plan(case, 1.0)
    return [
        (phase.link, phase.wire_bytes, traffic_of(made, number, members))
        for number, phase in enumerate(made.phases)
    ]


@pytest.mark.parametrize("case", BETWEEN, ids=named)
def test_the_busiest_rank_sends_or_receives_the_wire_bytes(case: Case) -> None:
    name, _, group = case
    found = [busiest(traffic) for _, _, traffic in phases(case, block(group))]
    if name in LATENT:
        assert all(most <= 1 for most in found)
    else:
        # Of three domains none is inside both trees with two children: 3/4 of what is counted.
        trees_of_three = name in ("tree", "nvls_tree") and group.domains == 3
        assert found == pytest.approx([0.75 if trees_of_three else 1.0] * len(found), rel=1e-12)


@pytest.mark.parametrize("case", BETWEEN, ids=named)
def test_messages_pass_only_the_kind_of_link_of_their_phase(case: Case) -> None:
    members = block(case[2], groups=2)
    for link, _, traffic in phases(case, members):
        same = members.domain[traffic.source] == members.domain[traffic.target]
        assert same.all() if link is LinkKind.SCALE_UP else not same.any()
        assert (traffic.source != traffic.target).all()
        assert (traffic.weight > 0).all()


def fewest_bytes(collective: Collective, group: GroupShape) -> float:
    """Return the payloads that must pass between ranks, or between domains, at least.

    Each of them must get what the others have, or give away what they want, or both.
    """
    parts = group.size if group.domains == 1 else group.domains
    match collective:
        case Collective.ALL_REDUCE:
            return 2 * (parts - 1)
        case Collective.ALL_TO_ALL:
            return group.size * (parts - 1) / parts
        case Collective.SEND_RECV:
            return 1 if group.size == 2 else parts
        case _:
            return parts - 1


@pytest.mark.parametrize("case", BETWEEN, ids=named)
def test_enough_bytes_are_sent_and_none_in_vain_where_it_is_known(case: Case) -> None:
    name, collective, group = case
    kind = LinkKind.SCALE_UP if group.domains == 1 else LinkKind.SCALE_OUT
    found = phases(case, block(group))
    sent = sum(wire * traffic.weight.sum() for link, wire, traffic in found if link is kind)
    fewest = fewest_bytes(collective, group)
    if name in SWITCHES_REDUCE:
        # A switch gets all payloads once; what it gives is not sent by any rank.
        fewest = group.size if group.domains == 1 else group.domains
    assert sent >= fewest * (1 - 1e-12)
    if group.domains == 1 and (name, collective) in SPARING:
        assert sent == pytest.approx(fewest, rel=1e-12)


@pytest.mark.parametrize("case", BETWEEN, ids=named)
def test_other_numbers_of_the_same_ranks_send_the_same(case: Case) -> None:
    group = case[2]
    plain = block(group)
    moved = np.random.default_rng(0).permutation(group.size)
    domain = np.empty_like(plain.domain)
    domain[moved] = plain.domain
    renamed = Members(accelerators=moved[plain.accelerators], domain=domain)
    for (_, _, one), (_, _, other) in zip(phases(case, plain), phases(case, renamed), strict=True):
        expected = matrix(one, group.size)
        assert matrix(other, group.size)[np.ix_(moved, moved)] == pytest.approx(expected)


@pytest.mark.parametrize("case", BETWEEN, ids=named)
def test_groups_do_not_send_to_each_other(case: Case) -> None:
    group, size = case[2], case[2].size
    together = phases(case, block(group, groups=2))
    for (_, _, both), (_, _, one) in zip(together, phases(case, block(group)), strict=True):
        alone = matrix(one, size)
        nothing = np.zeros_like(alone)
        assert matrix(both, 2 * size) == pytest.approx(
            np.block([[alone, nothing], [nothing, alone]])
        )


@pytest.mark.parametrize("case", BETWEEN, ids=named)
def test_patterns_do_not_depend_on_the_payload(case: Case) -> None:
    members = block(case[2])
    small, large = plan(case, 1.0), plan(case, 1e9)
    for number in range(len(small.phases)):
        one, other = (traffic_of(each, number, members) for each in (small, large))
        assert np.array_equal(one.weight, other.weight)


def traffic(
    collective: Collective, algorithm: str, group: GroupShape, members: Members, phase: int = 0
) -> Traffic:
    made: CommPlan = plan_collective(collective, 1e6, group, machine(), algorithm=algorithm)
    return traffic_of(made, phase, members)


def listed(found: Traffic) -> list[tuple[int, int, float]]:
    """Return the messages, sorted."""
    columns = zip(found.source.tolist(), found.target.tolist(), found.weight.tolist(), strict=True)
    return sorted((source, target, round(weight, 12)) for source, target, weight in columns)


TWO_PAIRS = GroupShape(size=4, per_domain=2)


def test_a_ring_over_domains_goes_slot_by_slot() -> None:
    found = traffic(Collective.ALL_GATHER, "ring", TWO_PAIRS, block(TWO_PAIRS))
    assert listed(found) == [(0, 2, 1), (1, 3, 1), (2, 0, 1), (3, 1, 1)]


def test_a_ring_over_ranks_in_turn_first_sorts_them_by_domain() -> None:
    # Ranks 0, 1, 2, 3 on accelerators 0, 2, 1, 3 of two nodes of two.
    cyclic = Members(accelerators=np.array([[0, 2, 1, 3]]), domain=np.array([0, 0, 1, 1]))
    found = traffic(Collective.ALL_GATHER, "ring", TWO_PAIRS, cyclic)
    assert listed(found) == [(0, 2, 1), (1, 3, 1), (2, 0, 1), (3, 1, 1)]


def test_of_uneven_domains_each_member_sends_and_receives_its_share() -> None:
    # Domains of one and of three members; two shares' bytes leave each of them.
    uneven = Members(accelerators=np.array([[0, 1, 2, 3]]), domain=np.array([0, 1, 1, 1]))
    found = traffic(Collective.ALL_GATHER, "ring", TWO_PAIRS, uneven)
    third = round(2 / 3, 12)
    assert listed(found) == [
        *((0, other, third) for other in (1, 2, 3)),
        *((other, 0, third) for other in (1, 2, 3)),
    ]


def test_pairs_of_uneven_domains_all_send_their_bytes() -> None:
    uneven = Members(accelerators=np.array([[0, 1, 2, 3]]), domain=np.array([0, 1, 1, 1]))
    found = traffic(Collective.ALL_TO_ALL, "pairwise", TWO_PAIRS, uneven)
    assert listed(found) == [
        *((0, other, 0.5) for other in (1, 2, 3)),
        *((other, 0, 0.5) for other in (1, 2, 3)),
    ]


def test_two_domains_are_the_roots_of_a_tree_each() -> None:
    # Each of the two slots sends half of s/2 up in one tree and down in the other: s/2 of s/2.
    found = traffic(Collective.ALL_REDUCE, "tree", TWO_PAIRS, block(TWO_PAIRS))
    assert np.array_equal(matrix(found, 4), np.kron([[0, 1], [1, 0]], np.eye(2)))


def test_a_transfer_goes_one_way_and_a_ring_of_two_both() -> None:
    pair, axis = GroupShape(size=2, per_domain=2), GroupShape(size=2, per_domain=2, stride=1)
    found = [listed(traffic(Collective.SEND_RECV, "direct", g, block(pair))) for g in (pair, axis)]
    assert found == [[(0, 1, 1)], [(0, 1, 1), (1, 0, 1)]]


def test_a_reduction_sends_what_a_broadcast_receives() -> None:
    group = GroupShape(size=8, per_domain=2)
    for algorithm in ("chain", "binomial"):
        one, other = (
            traffic(kind, algorithm, group, block(group))
            for kind in (Collective.BROADCAST, Collective.REDUCE)
        )
        assert np.array_equal(matrix(one, 8), matrix(other, 8).T)


def test_servers_are_pushed_to_and_pulled_from() -> None:
    group = GroupShape(size=3, per_domain=1)
    push, pull = (
        listed(traffic(Collective.ALL_REDUCE, "parameter_server", group, block(group), phase))
        for phase in (0, 1)
    )
    assert push == [(1, 0, 0.5), (2, 0, 0.5)]
    assert pull == [(0, 1, 0.5), (0, 2, 0.5)]


def test_a_torus_turns_rows_and_then_columns() -> None:
    # Ranks 0 1 / 2 3.
    grid = GroupShape(size=4, per_domain=4)
    rows, columns = (
        listed(traffic(Collective.ALL_REDUCE, "torus_2d", grid, block(grid), phase))
        for phase in (0, 1)
    )
    assert rows == [(0, 1, 1), (1, 0, 1), (2, 3, 1), (3, 2, 1)]
    assert columns == [(0, 2, 1), (1, 3, 1), (2, 0, 1), (3, 1, 1)]


@given(
    domains=st.lists(st.integers(0, 4), min_size=2, max_size=24).filter(lambda x: len(set(x)) > 1)
)
def test_all_members_of_a_scattered_group_share_what_crosses(domains: list[int]) -> None:
    size = len(domains)
    members = Members(accelerators=np.arange(size)[None], domain=np.array(domains))
    group = GroupShape(size=size, per_domain=1)
    found = traffic(Collective.ALL_GATHER, "ring", group, members)
    counts = np.bincount(domains)[domains]
    sent = np.bincount(found.source, found.weight, minlength=size)
    received = np.bincount(found.target, found.weight, minlength=size)
    assert sent == pytest.approx(1 / counts)
    assert received == pytest.approx(1 / counts)


@given(domains=st.lists(st.integers(0, 4), min_size=2, max_size=24))
def test_in_a_scattered_all_to_all_each_sends_to_all_outside(domains: list[int]) -> None:
    size = len(domains)
    members = Members(accelerators=np.arange(size)[None], domain=np.array(domains))
    found = traffic(Collective.ALL_TO_ALL, "pairwise", GroupShape(size=size, per_domain=1), members)
    outside = size - np.bincount(domains)[domains]
    sent = np.bincount(found.source, found.weight, minlength=size)
    assert sent == pytest.approx(outside / (size - 1))


def test_large_all_to_alls_are_taken_slot_by_slot_and_send_the_same_bytes() -> None:
    group = GroupShape(size=4096, per_domain=8)
    found = traffic(Collective.ALL_TO_ALL, "pairwise", group, block(group))
    assert len(found) == 512 * 511 * 8
    assert np.bincount(found.source, found.weight) == pytest.approx(np.ones(4096))
    assert np.bincount(found.target, found.weight) == pytest.approx(np.ones(4096))


@given(count=st.integers(2, 600))
def test_the_two_trees_share_the_work(count: int) -> None:
    parents = binary_parents(count)
    depth = [0] * count
    for place in sorted(range(1, count), key=lambda p: -(p & -p)):
        depth[place] = depth[parents[place - 1]] + 1
    found = double_tree_scheme(count)
    sent = np.bincount(found.source, minlength=count)
    assert len(found) == 4 * (count - 1)
    assert max(depth) <= math.ceil(math.log2(count))
    assert sent.max() <= 4
    assert (sent == np.bincount(found.target, minlength=count)).all()


@given(count=st.integers(2, 300))
def test_broadcast_trees_reach_everyone_once(count: int) -> None:
    for scheme in (binomial_scheme, flood_scheme):
        found = scheme(count)
        assert sorted(found.target.tolist()) == list(range(1, count))
        assert (found.source < found.target).all()
    assert np.bincount(binomial_scheme(count).source)[0] == math.ceil(math.log2(count))
