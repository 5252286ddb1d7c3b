"""Recursive doubling: all-gather and all-reduce in as few rounds as there can be."""

from __future__ import annotations

import numpy as np

from simulator.cost.collectives.pattern import Members, Traffic
from simulator.cost.collectives.recursive import (
    Leg,
    Play,
    exchange,
    fold,
    inside_then_across,
    recursive_phases,
    recursive_traffic,
    unfold,
)
from simulator.cost.collectives.request import Links, Request
from simulator.cost.plan import CommPlan
from simulator.parallel.groups import Collective, GroupShape
from simulator.topology.graph import FloatArray, IntArray


def recursive_doubling(request: Request, links: Links) -> CommPlan:
    """Return the plan of `log2 n` rounds, in which a rank and its partner swap all that they have.

    Partners are 1, 2, 4, ... ranks apart: `log2 r` rounds in the domain, `log2 N` across, each
    rank on its own NIC share. An all-reduce sends all `s` bytes in every round; an all-gather
    `s/n`, then twice as much, and so on: `(r-1)/n s` in the domain, `(N-1)/N s` across. Of a
    number that is no power of two, those beyond it fold into partners: a round more before, and
    one after in which they get the whole result.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of collective communication
    operations in MPICH", sections 4.1 and 4.5; MPICH
    src/mpi/coll/allreduce/allreduce_intra_recursive_doubling.c (folding).
    """
    legs = doubling_legs(request.collective, request.group)
    return request.plan("recursive_doubling", *recursive_phases(request, links, legs))


def recursive_doubling_traffic(members: Members, phase: int, plan: CommPlan) -> Traffic:
    """Return the exchanges between partners of all rounds of the phase."""
    return recursive_traffic(members, plan, doubling_legs(plan.collective, plan.group)[phase])


def doubling_legs(collective: Collective, group: GroupShape) -> tuple[Leg, ...]:
    """Return the rounds of recursive doubling, phase by phase."""
    if collective is Collective.ALL_REDUCE:
        everything = fold(1.0), exchange(lambda number, places, folded: 1.0)  # noqa: ARG005
        return inside_then_across(group, everything, (*everything, unfold(1.0)), [unfold(1.0)])
    return gathering_legs(group)


def gathering_legs(group: GroupShape) -> tuple[Leg, ...]:
    """Return the rounds of an all-gather, in which what a rank holds doubles."""
    own, of_domain = 1.0 / group.size, 1.0 / group.domains
    return inside_then_across(
        group,
        [fold(own), _doubling(own)],
        [fold(of_domain), _doubling(of_domain), unfold(1.0 - of_domain)],
        [unfold(1.0 - own)],
    )


def _doubling(own: float) -> Play:
    """Return the rounds in which each sends the pieces of its block, of `own` bytes each.

    Before round k a place holds the pieces of an aligned block of `2^k` places, and of those that
    have folded into them: into the first ones of all.
    """

    def share(number: int, places: IntArray, folded: int) -> FloatArray:
        block = 1 << number
        first = places // block * block
        pieces = block + np.clip(folded - first, 0, block)
        return np.multiply(pieces, own, dtype=np.float64)

    return exchange(share)
