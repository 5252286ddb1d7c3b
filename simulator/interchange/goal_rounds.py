"""Collectives as the messages they are made of, round by round, as GOAL wants them.

Members are numbered from 0 in the order of the group; sizes are bytes. A round of a member is over
when all of it is sent and received; its next one begins then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from simulator.parallel.groups import Collective

_PAIR = 2


class Round(NamedTuple):
    """What one member does in a round: whom it sends to and receives from, if anyone."""

    to: int | None
    of: int | None
    size: float
    """Bytes of the message, either way."""


Rounds = Callable[[int, int, float, Collective], list[Round]]
"""Rounds of a member (first) of a group of so many (second) with so large a payload."""


def rounds_of(
    collective: Collective, algorithm: str, member: int, members: int, payload: float
) -> list[Round]:
    """Return the rounds of one member; of `algorithm` where that has messages to show here.

    `payload` follows nccl-tests. Else a ring, a pairwise exchange, or a binomial tree.

    >>> rounds_of(Collective.ALL_GATHER, "ring", 0, 3, 30.0)
    [Round(to=1, of=2, size=10.0), Round(to=1, of=2, size=10.0)]
    """
    return _rounds(collective, algorithm, members)(member, members, payload, collective)


def expands(collective: Collective, algorithm: str, members: int) -> bool:
    """Return whether an algorithm's own messages are written, and not those of another."""
    return _rounds(collective, algorithm, members) is _OWN.get((collective, algorithm))


def _rounds(collective: Collective, algorithm: str, members: int) -> Rounds:
    own = _OWN.get((collective, algorithm))
    if own is _doubling and members & (members - 1):
        own = None
    return own or _DEFAULT[collective]


def _ring(member: int, members: int, payload: float, collective: Collective) -> list[Round]:
    """One part to the next member in each of n - 1 rounds, twice for an all-reduce.

    Source: nccl-tests, doc/PERFORMANCE.md.
    """
    laps = 2 if collective is Collective.ALL_REDUCE else 1
    to, of = (member + 1) % members, (member - 1) % members
    return [Round(to, of, payload / members)] * (laps * (members - 1))


def _doubling(member: int, members: int, payload: float, _: Collective) -> list[Round]:
    """The whole buffer with the member whose number differs in bit k, for each k.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of Collective Communication Operations
    in MPICH", section 4.5 (recursive doubling).
    """
    bits = range(members.bit_length() - 1)
    return [Round(member ^ (1 << bit), member ^ (1 << bit), payload) for bit in bits]


def _pairwise(member: int, members: int, payload: float, _: Collective) -> list[Round]:
    """In round k a part to the k-th member on, and one from the k-th member back."""
    part = payload / members
    return [Round((member + k) % members, (member - k) % members, part) for k in range(1, members)]


def _broadcast(member: int, members: int, payload: float, _: Collective) -> list[Round]:
    """A binomial tree from member 0: in round k the first 2^k members each serve one more."""
    found = []
    for bit in range((members - 1).bit_length()):
        first = 1 << bit
        if member < first and member + first < members:
            found.append(Round(member + first, None, payload))
        elif first <= member < _PAIR * first:
            found.append(Round(None, member - first, payload))
    return found


def _reduce(member: int, members: int, payload: float, collective: Collective) -> list[Round]:
    """The broadcast tree the other way round."""
    back = reversed(_broadcast(member, members, payload, collective))
    return [Round(each.of, each.to, each.size) for each in back]


_OWN: Mapping[tuple[Collective, str], Rounds] = {
    **{
        (collective, "ring"): _ring
        for collective in (
            Collective.ALL_REDUCE,
            Collective.ALL_GATHER,
            Collective.REDUCE_SCATTER,
        )
    },
    (Collective.ALL_REDUCE, "recursive_doubling"): _doubling,
    (Collective.ALL_TO_ALL, "pairwise"): _pairwise,
}
_DEFAULT: Mapping[Collective, Rounds] = {
    Collective.ALL_REDUCE: _ring,
    Collective.ALL_GATHER: _ring,
    Collective.REDUCE_SCATTER: _ring,
    Collective.ALL_TO_ALL: _pairwise,
    Collective.BROADCAST: _broadcast,
    Collective.REDUCE: _reduce,
}
