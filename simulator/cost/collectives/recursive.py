"""Recursive doubling and halving: partners at distances 1, 2, 4, ..., inside domains and across.

The others than a power of two fold: they hand their data to a partner before and get the result
after. Ranks of a domain fold and exchange first; then the domains do, slot by slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from simulator.cost.collectives.pattern import (
    NOTHING,
    Members,
    Traffic,
    between_teams,
    inside_teams,
    messages,
)
from simulator.cost.collectives.request import Links, Request, across, flow, network_latency
from simulator.cost.collectives.ring import ring_constants, ring_latency, scale_up_seconds
from simulator.cost.collectives.teams import teams_of
from simulator.cost.plan import CommPhase, CommPlan, LinkKind
from simulator.parallel.groups import GroupShape
from simulator.topology.graph import FloatArray, IntArray

Rounds = tuple[Traffic, ...]
"""Messages between places, round after round, in bytes for each byte of payload."""
Play = Callable[[int], Rounds]
"""The rounds of so many ranks of a domain, or domains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """Rounds in sequence on one kind of link: a phase of the plan."""

    link: LinkKind
    rounds: Play

    def places(self, group: GroupShape) -> int:
        """Return the places that take part in a group."""
        return group.per_domain if self.link is LinkKind.SCALE_UP else group.domains

    def share(self, group: GroupShape) -> float:
        """Return the bytes that the busiest rank sends, or receives, round after round."""
        return sum(float(each.weight.max()) for each in self.rounds(self.places(group)))


def inside_then_across(
    group: GroupShape, inside: Iterable[Play], outside: Iterable[Play], after: Iterable[Play]
) -> tuple[Leg, ...]:
    """Return the legs inside domains, across, and inside again, without those that are empty."""
    legs = [Leg(link=LinkKind.SCALE_UP, rounds=rounds) for rounds in inside]
    legs += [Leg(link=LinkKind.SCALE_OUT, rounds=rounds) for rounds in outside]
    legs += [Leg(link=LinkKind.SCALE_UP, rounds=rounds) for rounds in after]
    return tuple(leg for leg in legs if leg.rounds(leg.places(group)))


def backward(legs: tuple[Leg, ...]) -> tuple[Leg, ...]:
    """Return the legs run backward: what was sent is received, the last round is the first."""
    return tuple(replace(leg, rounds=reverse(leg.rounds)) for leg in reversed(legs))


def reverse(rounds: Play) -> Play:
    """Return the rounds run backward."""
    return lambda count: tuple(each.back for each in reversed(rounds(count)))


def fold(share: float) -> Play:
    """Return the round in which places beyond a power of two send `share` to their partners."""

    def rounds(count: int) -> Rounds:
        core = core_of(count)
        if core == count:
            return ()
        return (messages(np.arange(core, count), np.arange(count - core), share),)

    return rounds


def unfold(share: float) -> Play:
    """Return the round in which the partners send `share` back."""
    return reverse(fold(share))


def exchange(share: Callable[[int, IntArray, int], FloatArray | float]) -> Play:
    """Return the rounds in which places exchange at distances 1, 2, 4, ...

    `share` says how much a place sends, from the number of the round, the places, and how many
    beyond the power of two have folded into the first of them.
    """

    def rounds(count: int) -> Rounds:
        core = core_of(count)
        places = np.arange(core)
        return tuple(
            messages(places, places ^ (1 << number), share(number, places, count - core))
            for number in range(core.bit_length() - 1)
        )

    return rounds


def core_of(count: int) -> int:
    """Return the largest power of two up to `count`."""
    return 1 << (count.bit_length() - 1)


def recursive_phases(request: Request, links: Links, legs: tuple[Leg, ...]) -> list[CommPhase]:
    """Return a phase for each leg: its rounds one after another, then its bytes.

    The start of the collective, and of its first phase on the network, count once.
    """
    constants, group = ring_constants(links.constants, request.collective), request.group
    phases: list[CommPhase] = []
    connected = False
    for leg in legs:
        hops, wire = len(leg.rounds(leg.places(group))), leg.share(group) * request.payload
        fixed = 0.0 if phases else constants.start
        if leg.link is LinkKind.SCALE_OUT:
            fixed += network_latency(links, hops, wire / hops)
            fixed -= network_latency(links, 0.0, wire / hops) if connected else 0.0
            phases.append(across(links, fixed, wire))
            connected = True
        else:
            fixed += ring_latency(constants, hops, wire / hops) - constants.start
            seconds = scale_up_seconds(constants, links.bandwidth, wire, 0.0)
            phases.append(flow(LinkKind.SCALE_UP, fixed, wire, seconds))
    return phases


def recursive_traffic(members: Members, plan: CommPlan, leg: Leg) -> Traffic:
    """Return the messages of a leg; ranks that have folded in their domain send nothing across."""
    group, share = plan.group, leg.share(plan.group)
    teams = teams_of(members.accelerators, members.domain)

    def scheme(count: int) -> Traffic:
        return Traffic.joined(NOTHING, *leg.rounds(count)).times(1.0 / share)

    if leg.link is LinkKind.SCALE_UP:
        return inside_teams(teams, scheme)
    cores = np.array([core_of(int(count)) for count in teams.count], dtype=np.intp)
    slots = core_of(group.per_domain)
    return between_teams(replace(teams, count=cores), scheme).times(slots)
