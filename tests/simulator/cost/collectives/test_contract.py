"""What every algorithm of the registry must do, whatever it is."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.collectives.registry import ALGORITHMS
from simulator.cost.collectives.select import algorithms_for, plan_collective
from simulator.cost.plan import CommPlan, LinkKind
from simulator.hardware.collective_constants import CollectiveConstants
from simulator.parallel.groups import Collective, GroupShape
from tests.simulator.cost.collectives.cases import (
    CASES,
    GROUPS,
    MACHINES,
    TO_HOST,
    Case,
    named,
    plan,
)
from tests.simulator.cost.collectives.machines import CURVED, HOST, machine

ALONE = GroupShape(size=1, per_domain=1)
payloads = st.floats(min_value=1.0, max_value=1e12)
cases = st.sampled_from(CASES)
machines = st.sampled_from(sorted(MACHINES))


def total(kind: LinkKind, plan: CommPlan) -> float:
    return sum(phase.wire_bytes for phase in plan.phases if phase.link is kind)


@given(case=cases, where=machines, payload=payloads, factor=st.floats(1.0, 100.0))
def test_more_bytes_never_take_less_time(
    case: Case, where: str, payload: float, factor: float
) -> None:
    larger = plan(case, payload * factor, where).seconds
    assert larger >= plan(case, payload, where).seconds * (1 - 1e-12)


@given(case=cases, payload=payloads, faster=st.floats(1.0, 100.0))
def test_faster_links_never_take_more_time(case: Case, payload: float, faster: float) -> None:
    name, collective, group = case
    better = machine(
        constants=CURVED,
        bandwidth=1e11 * faster,
        nic_bandwidth=1e10 * faster,
        latency=1e-5,
        host_bandwidth=HOST * faster,
    )
    seconds = plan_collective(collective, payload, group, better, algorithm=name).seconds
    assert seconds <= plan(case, payload, "curved").seconds * (1 + 1e-12)


@pytest.mark.parametrize("where", MACHINES)
@pytest.mark.parametrize("case", CASES, ids=named)
def test_an_empty_payload_costs_only_latency(case: Case, where: str) -> None:
    empty = plan(case, 0.0, where)
    assert all(phase.wire_bytes == 0 and phase.fixed >= 0 for phase in empty.phases)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_huge_payload_takes_its_bytes_over_its_rates(case: Case) -> None:
    huge = plan(case, 1e15)
    flows = sum(phase.wire_bytes / phase.rate for phase in huge.phases)
    assert huge.seconds == pytest.approx(flows, rel=1e-5)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_no_flow_is_faster_than_its_link(case: Case) -> None:
    rates = {LinkKind.SCALE_UP: 100e9, LinkKind.SCALE_OUT: 10e9, LinkKind.HOST: HOST}
    slack = 1 + 1e-12
    assert all(p.rate <= rates[p.link] * slack for p in plan(case, 1e9).phases)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != TO_HOST])
def test_a_group_of_one_is_free(name: str) -> None:
    collective = min(ALGORITHMS[name].collectives)
    empty = plan_collective(collective, 1e9, ALONE, MACHINES["round"], algorithm=name)
    assert (empty.phases, empty.seconds) == ((), 0.0)


def test_a_copy_to_the_host_takes_its_bytes_over_the_rate_of_one_rank() -> None:
    # 10 us and 1 GB at 0.8 x 50 GB/s; the group does not matter, each rank has its own link.
    alone, many = (
        plan_collective(Collective.HOST_COPY, 1e9, group, MACHINES["curved"])
        for group in (ALONE, GROUPS[-1])
    )
    assert alone.seconds == many.seconds == pytest.approx(10e-6 + 1 / 40)


@pytest.mark.parametrize("collective", Collective)
@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_each_collective_has_an_automatic_algorithm(
    collective: Collective, group: GroupShape
) -> None:
    fastest = plan_collective(collective, 1e6, group, MACHINES["round"])
    names = algorithms_for(collective, group, MACHINES["round"])
    rivals = [
        plan_collective(collective, 1e6, group, MACHINES["round"], algorithm=name).seconds
        for name in names
        if ALGORITHMS[name].automatic
    ]
    assert fastest.seconds == min(rivals)


def flooded(ranks: int, rank: int = 0, before: int = 0) -> int:
    """Return the payloads in sequence until all below `rank` have theirs, its children at once."""
    children = [
        rank + 2**power
        for power in range(ranks.bit_length())
        if rank < 2**power and rank + 2**power < ranks
    ]
    after = before + len(children)
    return max([before, *(flooded(ranks, child, after) for child in children)])


def is_power(ranks: int) -> bool:
    return ranks & (ranks - 1) == 0


def core(ranks: int) -> int:
    """Return the largest power of two up to `ranks`."""
    return max(1 << power for power in range(ranks) if 1 << power <= ranks)


def gathered(ranks: int) -> float:
    """Return the payloads of recursive doubling; of three: one folds, two swap, one is told."""
    return 5 / 3 if ranks == 3 else (ranks - 1) / ranks


def reduced(ranks: int) -> float:
    """Return the payloads of an all-reduce by halving and doubling, folding included."""
    return 2 * (core(ranks) - 1) / core(ranks) + (0 if is_power(ranks) else 2)


def doubled(ranks: int) -> float:
    """Return the payloads of an all-reduce by doubling, folding included."""
    return math.log2(core(ranks)) + (0 if is_power(ranks) else 2)


WIRE: dict[str, Callable[[float, int, int], float]] = {
    # s: payload, n: ranks, r: ranks a domain -> bytes a rank puts on its scale-up link.
    "ring": lambda s, n, r: (n - 1) / n * s,
    "nvls": lambda s, n, r: (n + 1) / n * s,
    "pairwise": lambda s, n, r: (n - 1) / n * s,
    "chain": lambda s, n, r: s,
    "binomial": lambda s, n, r: math.ceil(math.log2(n)) * s,
    "direct": lambda s, n, r: s,
    "parameter_server": lambda s, n, r: 2 * (n - 1) * s,
    "gloo_reduce_scatter": lambda s, n, r: 2 * (n - 1) / n * s,
    "gloo_broadcast": lambda s, n, r: flooded(n) * s,
    "ring_bidirectional": lambda s, n, r: (n - 1) / n * s,
    "all_pairs": lambda s, n, r: (n - 1) / n * s,
    "torus_2d": lambda s, n, r: (n - 1) / n * s,
    "recursive_doubling": lambda s, n, r: gathered(n) * s,
    "recursive_doubling to all": lambda s, n, r: doubled(n) * s,
    "recursive_halving": lambda s, n, r: gathered(n) * s,
    "recursive_halving to all": lambda s, n, r: reduced(n) * s,
    TO_HOST: lambda s, n, r: s,
}
NIC: dict[str, Callable[[float, int, int], float]] = {
    # The same -> bytes over the NIC share of a rank of the busiest domain.
    "ring": lambda s, n, r: (n - 1) / n * s / r,
    "tree": lambda s, n, r: (1 if n == 2 * r else 2) * s / r,
    "nvls_tree": lambda s, n, r: (1 if n == 2 * r else 2) * s / r,
    "hierarchical": lambda s, n, r: 2 * (n / r - 1) / n * s,
    "pairwise": lambda s, n, r: (n - r) / n * s,
    "two_step": lambda s, n, r: (n - r) / n * s,
    "chain": lambda s, n, r: s / r,
    "binomial": lambda s, n, r: math.ceil(math.log2(n / r)) * s,
    "direct": lambda s, n, r: s,
    "parameter_server": lambda s, n, r: 2 * (n - r) * s,
    "gloo_reduce_scatter": lambda s, n, r: 2 * (n - 1) / n * s / r,
    "gloo_broadcast": lambda s, n, r: flooded(n) * s,
    "ring_bidirectional": lambda s, n, r: (n - 1) / n * s / r,
    "all_pairs": lambda s, n, r: (n - r) / n * s,
    "torus_2d": lambda s, n, r: (n - 1) / n * s,
    "sharp": lambda s, n, r: s / r,
    "recursive_doubling": lambda s, n, r: gathered(n // r) * s,
    "recursive_doubling to all": lambda s, n, r: doubled(n // r) * s,
    "recursive_halving": lambda s, n, r: gathered(n // r) * s,
    "recursive_halving to all": lambda s, n, r: reduced(n // r) * s / core(r),
    TO_HOST: lambda s, n, r: s,
}
TWICE = {"ring", "ring_bidirectional", "all_pairs", "torus_2d"}
"""Algorithms that send each byte twice in an all-reduce."""


@pytest.mark.parametrize("case", CASES, ids=named)
def test_wire_bytes_are_those_of_theory(case: Case) -> None:
    name, collective, group = case
    to_all = collective is Collective.ALL_REDUCE
    laps = 2 if name in TWICE and to_all else 1
    name = f"{name} to all" if name.startswith("recursive") and to_all else name
    kind, theory = (LinkKind.SCALE_UP, WIRE) if group.domains == 1 else (LinkKind.SCALE_OUT, NIC)
    kind = LinkKind.HOST if name == TO_HOST else kind
    expected = laps * theory[name](1e9, group.size, group.per_domain)
    assert total(kind, plan(case, 1e9)) == pytest.approx(expected, rel=1e-12)


@given(case=cases, payload=payloads, second=st.floats(0.1, 10.0), byte=st.floats(0.1, 10.0))
def test_other_units_of_time_and_size_give_the_same_answer(
    case: Case, payload: float, second: float, byte: float
) -> None:
    name, collective, group = case
    rescaled = machine(
        constants=_rescaled(second, byte),
        bandwidth=1e11 * byte / second,
        nic_bandwidth=1e10 * byte / second,
        latency=1e-5 * second,
        host_bandwidth=HOST * byte / second,
    )
    seconds = plan_collective(collective, payload * byte, group, rescaled, algorithm=name).seconds
    assert seconds == pytest.approx(plan(case, payload, "curved").seconds * second, rel=1e-9)


def _rescaled(second: float, byte: float) -> CollectiveConstants:
    """Return `CURVED` with every time multiplied by `second` and every size by `byte`."""

    def change(key: str, value: object) -> object:
        if isinstance(value, dict):
            return {inner: change(inner, item) for inner, item in value.items()}
        if key == "residual":
            assert isinstance(value, tuple)
            return tuple(change("", item) for item in value)
        if key == "payload":
            assert isinstance(value, tuple)
            return tuple(item * byte for item in value)
        if isinstance(value, float) and key.endswith(("start", "latency", "step")):
            return value * second
        if isinstance(value, float) and key.endswith(("bytes", "fill", "burst")):
            return value * byte
        return value

    return CollectiveConstants.model_validate(change("", CURVED.model_dump()))
