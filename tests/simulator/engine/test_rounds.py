"""Collectives message by message agree with their phases, on several networks."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.collectives.pattern import Members, Traffic, messages
from simulator.cost.collectives.registry import ALGORITHMS, traffic_of
from simulator.cost.collectives.rounds import ROUNDS, rounds_of
from simulator.cost.collectives.select import plan_collective
from simulator.cost.plan import CommPlan, LinkKind
from simulator.engine.rounds import Route, Wires, seconds_of_rounds
from simulator.parallel.groups import Collective, GroupShape
from simulator.units import GB, US
from tests.simulator.cost.collectives.machines import machine

PAYLOAD = 4e8
INSIDE, ACROSS = 100 * GB, 10 * GB
"""Bytes/s of a rank's links on the machine of round numbers."""
START, STEP, HOP = 10 * US, 1 * US, 10 * US
"""Its constants: start of a collective, a step in a domain, a hop between nodes."""
SHAPES = [(8, 8), (3, 3), (2, 1), (4, 1), (6, 1), (8, 1), (16, 4), (12, 4)]
EXACT = [
    (name, collective, GroupShape(size=size, per_domain=width))
    for name in ROUNDS
    for collective, (size, width) in product(sorted(ALGORITHMS[name].collectives), SHAPES)
    # A tree has to fill; rounds of an all-to-all, of which some cross and some do not, add up.
    if name != "tree" and (name != "pairwise" or width in (1, size))
]
IN_TURN = [
    # Rings that rotate over the NICs cross in every round, and messages of an all-to-all fly at
    # the same time: their latencies are no sum over rounds.
    case
    for case in EXACT
    if (case[0] != "ring" or case[2].per_domain in (1, case[2].size))
    and (case[0] != "pairwise" or case[2].domains == 1)
]

Case = tuple[str, Collective, GroupShape]
Capacity = dict[Hashable, float]


def ports(group: GroupShape) -> tuple[Route, Capacity]:
    """Return two full-duplex links of each rank: one to its domain, one to the network."""

    def route(source: int, target: int) -> tuple[Hashable, ...]:
        inside = source // group.per_domain == target // group.per_domain
        kind = LinkKind.SCALE_UP if inside else LinkKind.SCALE_OUT
        return (kind, "out", source), (kind, "in", target)

    rates = {LinkKind.SCALE_UP: INSIDE, LinkKind.SCALE_OUT: ACROSS}
    every = product(rates, ("out", "in"), range(group.size))
    return route, {(kind, way, rank): rates[kind] for kind, way, rank in every}


def two_leaves(ranks: int, uplink: float) -> tuple[Route, Capacity]:
    """Return single ranks under two switches, which one cable of `uplink` bytes/s joins."""
    half = ranks // 2

    def route(source: int, target: int) -> tuple[Hashable, ...]:
        ends = ("out", source), ("in", target)
        leaves = source // half, target // half
        return ends if leaves[0] == leaves[1] else (*ends, ("leaf", leaves[0]))

    capacity: Capacity = dict.fromkeys(product(("out", "in"), range(ranks)), ACROSS)
    return route, capacity | {("leaf", 0): uplink, ("leaf", 1): uplink}


def planned(case: Case) -> CommPlan:
    name, collective, group = case
    return plan_collective(collective, PAYLOAD, group, machine(), algorithm=name)


def played(
    case: Case, route: Route, capacity: Capacity, payload: float = PAYLOAD, latency: bool = False
) -> float:
    def delay(source: int, target: int) -> float:
        width = case[2].per_domain
        return (STEP if source // width == target // width else HOP) if latency else 0.0

    wires = Wires(route=route, capacity=capacity, latency=delay)
    return seconds_of_rounds(rounds_of(*case), payload, wires)


def named(case: Case) -> str:
    name, collective, group = case
    return f"{name}-{collective}-{group.size}x{group.per_domain}"


@pytest.mark.parametrize("case", EXACT, ids=named)
def test_without_latency_rounds_take_the_seconds_of_the_flows(case: Case) -> None:
    flows = sum(phase.wire_bytes / phase.rate for phase in planned(case).phases)
    assert played(case, *ports(case[2])) == pytest.approx(flows, rel=1e-9)


@pytest.mark.parametrize("case", IN_TURN, ids=named)
def test_with_latency_rounds_take_both_terms_of_the_closed_form(case: Case) -> None:
    seconds = played(case, *ports(case[2]), latency=True)
    assert START + seconds == pytest.approx(planned(case).seconds, rel=1e-9)


@pytest.mark.parametrize("case", IN_TURN, ids=named)
def test_messages_of_no_bytes_take_the_latency_of_the_closed_form(case: Case) -> None:
    fixed = sum(phase.fixed for phase in planned(case).phases)
    seconds = played(case, *ports(case[2]), payload=0.0, latency=True)
    assert START + seconds == pytest.approx(fixed, rel=1e-9)


@pytest.mark.parametrize("domains", [2, 4, 5, 8])
def test_trees_take_their_flows_but_for_filling_them(domains: int) -> None:
    # 64 pieces go up at most 3 edges and down as many: 6 pieces more.
    case = ("tree", Collective.ALL_REDUCE, GroupShape(size=domains, per_domain=1))
    (phase,) = planned(case).phases
    flows = phase.wire_bytes / ACROSS
    assert flows * (1 - 1e-9) <= played(case, *ports(case[2])) <= flows * (1 + 6 / 64)


def test_trees_of_three_domains_are_counted_a_third_too_long() -> None:
    case = ("tree", Collective.ALL_REDUCE, GroupShape(size=3, per_domain=1))
    (phase,) = planned(case).phases
    ratio = played(case, *ports(case[2])) * ACROSS / phase.wire_bytes
    assert 0.75 <= ratio <= 0.75 * (1 + 6 / 64)


def test_rounds_of_an_all_to_all_over_domains_add_up_what_the_flow_overlaps() -> None:
    # 4 of the rounds of 16 ranks stay partly inside: the flow takes 12 chunks, rounds 15 at most.
    case = ("pairwise", Collective.ALL_TO_ALL, GroupShape(size=16, per_domain=4))
    (phase,) = planned(case).phases
    ratio = played(case, *ports(case[2])) * ACROSS / phase.wire_bytes
    assert 1.0 <= ratio <= 15 / 12


def limited(case: Case, route: Route, capacity: Capacity) -> float:
    """Return the seconds of the flows where each advances as its fullest link allows."""
    plan, size = planned(case), case[2].size
    domain = np.arange(size) // case[2].per_domain
    members = Members(accelerators=np.arange(size)[None], domain=domain)
    traffics = [traffic_of(plan, number, members) for number in range(len(plan.phases))]
    return sum(
        phase.wire_bytes * busiest(found, route, capacity)
        for phase, found in zip(plan.phases, traffics, strict=True)
    )


def busiest(found: Traffic, route: Route, capacity: Capacity) -> float:
    """Return the seconds that the fullest link takes for a byte of the flow."""
    load = dict.fromkeys(capacity, 0.0)
    for source, target, weight in zip(
        found.source.tolist(), found.target.tolist(), found.weight.tolist(), strict=True
    ):
        for link in route(source, target):
            load[link] += weight
    return max(load[link] / capacity[link] for link in capacity)


SINGLES = GroupShape(size=8, per_domain=1)


@pytest.mark.parametrize("slower", [2.0, 8.0, 32.0])
@pytest.mark.parametrize("collective", sorted(ALGORITHMS["ring"].collectives))
def test_a_ring_over_a_thin_uplink_goes_at_the_rate_of_its_fullest_link(
    collective: Collective, slower: float
) -> None:
    case, network = ("ring", collective, SINGLES), two_leaves(8, ACROSS / slower)
    seconds = played(case, *network)
    assert seconds == pytest.approx(limited(case, *network), rel=1e-9)
    wire = sum(phase.wire_bytes for phase in planned(case).phases)
    assert seconds == pytest.approx(wire / (ACROSS / slower), rel=1e-9)


def test_an_all_to_all_over_a_thin_uplink_takes_all_bytes_that_cross() -> None:
    # 16 of the messages of 50 MB go each way over 1 GB/s.
    case, network = ("pairwise", Collective.ALL_TO_ALL, SINGLES), two_leaves(8, 1 * GB)
    assert played(case, *network) == pytest.approx(0.8, rel=1e-9)
    assert limited(case, *network) == pytest.approx(0.8, rel=1e-9)


@pytest.mark.parametrize("name", ["recursive_doubling", "recursive_halving"])
def test_rounds_that_stay_under_a_leaf_do_not_wait_for_the_uplink(name: str) -> None:
    # One of the rounds (two, there and back) crosses: the flow is as slow as the whole of them.
    case, network = (name, Collective.ALL_REDUCE, SINGLES), two_leaves(8, 1 * GB)
    by_round = [PAYLOAD * busiest(each, *network) for each in rounds_of(*case)]
    assert played(case, *network) == pytest.approx(sum(by_round), rel=1e-9)
    crossing = sum(seconds for seconds in by_round if seconds > PAYLOAD / ACROSS)
    assert limited(case, *network) == pytest.approx(crossing, rel=1e-9)


@given(rates=st.lists(st.floats(1.0, 100.0), min_size=12, max_size=12))
def test_a_ring_goes_at_the_pace_of_its_slowest_link_wherever_that_is(rates: list[float]) -> None:
    case = ("ring", Collective.ALL_GATHER, GroupShape(size=6, per_domain=1))
    route, capacity = ports(case[2])
    across = [link for link, rate in capacity.items() if rate == ACROSS]
    slower = {link: rate * GB for link, rate in zip(across, rates, strict=True)}
    wire = planned(case).phases[0].wire_bytes
    seconds = played(case, route, capacity | slower)
    assert seconds == pytest.approx(wire / (min(rates) * GB), rel=1e-9)


@given(
    case=st.sampled_from([case for case in EXACT if len(planned(case).phases) == 1]),
    seed=st.integers(0, 2**16),
)
def test_no_network_is_faster_than_its_fullest_link(case: Case, seed: int) -> None:
    route, capacity = ports(case[2])
    draw = np.random.default_rng(seed)
    uneven = {link: rate * draw.uniform(0.1, 1.0) for link, rate in capacity.items()}
    assert played(case, route, uneven) >= limited(case, route, uneven) * (1 - 1e-9)


def test_a_rank_starts_its_next_round_while_others_are_in_the_last() -> None:
    # 0 to 1 takes 1 s, and then 2 more to 2; 3 to 4 meanwhile takes 5, and 5 to 6 waits for none.
    first = messages(np.array([0, 3]), np.array([1, 4]), np.array([1.0, 5.0]))
    second = messages(np.array([1, 5]), np.array([2, 6]), np.array([2.0, 1.0]))
    wires = Wires(
        route=lambda source, target: ((source, target),),
        capacity=dict.fromkeys(((0, 1), (3, 4), (1, 2), (5, 6)), 1.0),
        latency=lambda source, target: 0.0,
    )
    ends = [seconds_of_rounds(rounds, 1.0, wires) for rounds in ([first], [first, second])]
    assert ends == [5.0, 5.0]
