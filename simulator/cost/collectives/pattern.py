"""Who sends how much to whom in one phase of a collective, for all groups that do it at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from simulator.cost.collectives.teams import Teams, coupled, teams_of
from simulator.cost.plan import CommPlan, LinkKind
from simulator.topology.graph import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Members:
    """The groups that do a collective at the same time, by accelerator."""

    accelerators: IntArray
    """(groups, size) accelerators in the order of their ranks in the group."""
    domain: IntArray
    """(accelerators of the cluster,) the number of the scale-up domain of each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traffic:
    """Messages of one phase as columns, in bytes for each wire byte of the phase.

    Only what the phase's kind of link carries: between domains for `SCALE_OUT`, inside them for
    `SCALE_UP`. It does not depend on the payload. Where members lie as `CommPlan.group` says, the
    busiest rank sends (or receives) 1: `CommPhase.wire_bytes` are its bytes.
    """

    source: IntArray
    """(messages,) accelerators; of a `Scheme`, places in the group or domain."""
    target: IntArray
    weight: FloatArray

    def __len__(self) -> int:
        return len(self.source)

    def times(self, factor: float | FloatArray) -> Traffic:
        """Return the same messages, `factor` times as large."""
        return Traffic(source=self.source, target=self.target, weight=self.weight * factor)

    @property
    def back(self) -> Traffic:
        """The same messages from target to source."""
        return Traffic(source=self.target, target=self.source, weight=self.weight)

    @classmethod
    def joined(cls, *parts: Self) -> Traffic:
        """Return the messages of all parts."""
        return Traffic(
            source=np.concatenate([part.source for part in parts]),
            target=np.concatenate([part.target for part in parts]),
            weight=np.concatenate([part.weight for part in parts]),
        )


Pattern = Callable[[Members, int, CommPlan], Traffic]
"""The traffic of a phase (by its number) of a plan. Of the plan it reads the collective, the group
and the kinds of links: equal ones give equal traffic, whatever the payload."""
Scheme = Callable[[int], Traffic]
"""The messages between the places 0, 1, ... of so many ranks or domains."""

NOTHING = Traffic(
    source=np.zeros(0, dtype=np.intp),
    target=np.zeros(0, dtype=np.intp),
    weight=np.zeros(0, dtype=np.float64),
)


def messages(source: IntArray, target: IntArray, weight: float | FloatArray) -> Traffic:
    """Return messages of these weights, or all of one weight."""
    weights = np.broadcast_to(np.asarray(weight, dtype=np.float64), source.shape)
    return Traffic(source=source, target=target, weight=weights)


def inside_domains(members: Members, scheme: Scheme) -> Traffic:
    """Return what the members of each domain send to each other by a scheme over them."""
    teams = teams_of(members.accelerators, members.domain)
    return inside_teams(teams, scheme)


def inside_teams(teams: Teams, scheme: Scheme) -> Traffic:
    """Return what the members of each team send to each other by a scheme over them."""
    found = _repeated(teams.count, teams.first, scheme)
    seats = teams.accelerators
    return messages(seats[found.source], seats[found.target], found.weight)


def between_domains(members: Members, scheme: Scheme, *, each_pair: bool = False) -> Traffic:
    """Return what domains send to each other by a scheme over the domains of a group.

    The weight of a message from domain to domain is spread evenly over the members of both: slot
    i sends to slot i where they have as many. With `each_pair` it is that of one member to one,
    and there are as many as pairs of members.
    """
    teams = teams_of(members.accelerators, members.domain)
    return between_teams(teams, scheme, each_pair=each_pair)


def between_teams(teams: Teams, scheme: Scheme, *, each_pair: bool = False) -> Traffic:
    """Return what `between_domains` returns, of teams."""
    found = _repeated(teams.group_count, teams.group_first, scheme)
    weight = found.weight
    if each_pair:
        weight = weight * teams.count[found.source] * teams.count[found.target]
    source, target, weight = coupled(teams, found.source, found.target, weight)
    return Traffic(source=source, target=target, weight=weight)


def between_heads(members: Members, scheme: Scheme) -> Traffic:
    """Return what the first members of domains send by a scheme over the domains of a group."""
    teams = teams_of(members.accelerators, members.domain)
    found = _repeated(teams.group_count, teams.group_first, scheme)
    heads = teams.accelerators[teams.first]
    return messages(heads[found.source], heads[found.target], found.weight)


def between_members(members: Members, link: LinkKind, scheme: Scheme) -> Traffic:
    """Return what the members of a group send by a scheme over all of them on a kind of link."""
    size = members.accelerators.shape[1]
    found = scheme(size)
    source = members.accelerators[:, found.source].ravel()
    target = members.accelerators[:, found.target].ravel()
    weight = np.tile(found.weight, len(members.accelerators))
    inside = members.domain[source] == members.domain[target]
    kept = inside if link is LinkKind.SCALE_UP else ~inside
    return Traffic(source=source[kept], target=target[kept], weight=weight[kept])


def _repeated(counts: IntArray, firsts: IntArray, scheme: Scheme) -> Traffic:
    """Return a scheme over each of several rows of places that begin at `firsts`."""
    parts = [NOTHING]
    for count in np.unique(counts):
        once, starts = scheme(int(count)), firsts[counts == count]
        parts.append(
            Traffic(
                source=(starts[:, None] + once.source).ravel(),
                target=(starts[:, None] + once.target).ravel(),
                weight=np.tile(once.weight, len(starts)),
            )
        )
    return Traffic.joined(*parts)
