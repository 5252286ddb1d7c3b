"""Recursive halving: reduce-scatter, and Rabenseifner's all-reduce that ends with doubling."""

from __future__ import annotations

from simulator.cost.collectives.pattern import Members, Traffic
from simulator.cost.collectives.recursive import (
    Leg,
    Play,
    backward,
    core_of,
    exchange,
    fold,
    inside_then_across,
    recursive_phases,
    recursive_traffic,
    reverse,
    unfold,
)
from simulator.cost.collectives.recursive_doubling import gathering_legs
from simulator.cost.collectives.request import Links, Request
from simulator.cost.plan import CommPlan
from simulator.parallel.groups import Collective, GroupShape


def recursive_halving(request: Request, links: Links) -> CommPlan:
    """Return the plan in which a rank and its partner each keep half of what they have.

    A reduce-scatter is the all-gather of `recursive_doubling` run backward: the furthest partners
    first. An all-reduce scatters and gathers with the nearest partners first and last:
    `2 (n-1)/n s` bytes in `2 log2 n` rounds, `2 (N-1)/N s/r` of them across. Of a number that is
    no power of two, those beyond it send all their bytes to a partner first and get the result
    last: `2 s` more on the partner's link, `2 s/r'` across, where r' is the power of two up to r.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of collective communication
    operations in MPICH", sections 4.4 and 4.5.
    """
    legs = halving_legs(request.collective, request.group)
    return request.plan("recursive_halving", *recursive_phases(request, links, legs))


def recursive_halving_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return the exchanges between partners of all rounds of the phase."""
    return recursive_traffic(members, plan, halving_legs(plan.collective, plan.group)[phase])


def halving_legs(collective: Collective, group: GroupShape) -> tuple[Leg, ...]:
    """Return the rounds of recursive halving, phase by phase."""
    if collective is Collective.REDUCE_SCATTER:
        return backward(gathering_legs(group))
    left = 1.0 / core_of(group.per_domain)
    scatter = _halving(1.0)
    return inside_then_across(
        group,
        [fold(1.0), scatter],
        [fold(left), _there_and_back(_halving(left)), unfold(left)],
        [reverse(scatter), unfold(1.0)],
    )


def _halving(whole: float) -> Play:
    """Return the rounds in which each sends half of what it has, of `whole` bytes at first."""
    return exchange(lambda number, places, folded: whole / (2 << number))  # noqa: ARG005


def _there_and_back(rounds: Play) -> Play:
    back = reverse(rounds)
    return lambda count: rounds(count) + back(count)
