"""Collectives as the messages they are made of, round by round and member by member, for GOAL.

Members are numbered from 0 in the order of the group, and stand in one row: of several scale-up
domains, one ring goes through all. A round of a member is over when all of it is sent and received;
its next one begins then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from simulator.cost.collectives.pattern import Traffic
from simulator.cost.collectives.registry import ALGORITHMS
from simulator.cost.collectives.rounds import rounds_of
from simulator.parallel.groups import Collective, GroupShape

_WRITTEN = ("ring", "pairwise", "binomial", "recursive_doubling", "recursive_halving")
"""Algorithms whose messages are written; those of trees are too many."""
_DEFAULT: Mapping[Collective, str] = {
    Collective.ALL_REDUCE: "ring",
    Collective.ALL_GATHER: "ring",
    Collective.REDUCE_SCATTER: "ring",
    Collective.ALL_TO_ALL: "pairwise",
    Collective.BROADCAST: "binomial",
    Collective.REDUCE: "binomial",
}
Message = tuple[int, float]
"""The other member, and bytes for each byte of payload."""


class Round(NamedTuple):
    """What one member does in a round."""

    sends: tuple[Message, ...]
    receives: tuple[Message, ...]


def rounds_of_members(
    collective: Collective, algorithm: str, members: int
) -> tuple[tuple[Round, ...], ...]:
    """Return [member] the rounds in which it has a message, of `algorithm` if those are written.

    Else of a ring, a pairwise exchange, or a binomial tree. Payloads follow nccl-tests.

    >>> rounds_of_members(Collective.ALL_GATHER, "ring", 2)[0]
    (Round(sends=((1, 0.5),), receives=((1, 0.5),)),)
    """
    name = algorithm if expands(collective, algorithm) else _DEFAULT[collective]
    rounds = rounds_of(name, collective, GroupShape(size=members, per_domain=1))
    known: dict[int, list[Round]] = {}
    for each in rounds:
        if id(each) not in known:
            known[id(each)] = _by_member(each, members)
    return tuple(
        tuple(found for each in rounds if any(found := known[id(each)][member]))
        for member in range(members)
    )


def expands(collective: Collective, algorithm: str) -> bool:
    """Return whether an algorithm's own messages are written, and not those of another."""
    return algorithm in _WRITTEN and collective in ALGORITHMS[algorithm].collectives


def _by_member(traffic: Traffic, members: int) -> list[Round]:
    sends: list[list[Message]] = [[] for _ in range(members)]
    receives: list[list[Message]] = [[] for _ in range(members)]
    rows = (traffic.source.tolist(), traffic.target.tolist(), traffic.weight.tolist())
    for source, target, weight in zip(*rows, strict=True):
        sends[source].append((target, weight))
        receives[target].append((source, weight))
    return [Round(tuple(to), tuple(of)) for to, of in zip(sends, receives, strict=True)]
