"""With whom a rank of a stage talks, said once for all ranks of the stage."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.parallel.layout import ParallelLayout


@dataclass(frozen=True, slots=True)
class Spread:
    """The group of `size` ranks of the same stage, `stride` apart, that a rank belongs to."""

    channel: str
    """Groups of other channels are other communicators, even of the same ranks."""
    size: int
    stride: int


@dataclass(frozen=True, slots=True)
class AcrossStages:
    """The ranks at the same place of some stages."""

    channel: str
    stages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SamePlace:
    """The rank at the same place of another stage."""

    stage: int


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The rank `step` further round the ring of a `Spread` group."""

    size: int
    stride: int
    step: int


Group = Spread | AcrossStages
Peer = SamePlace | Neighbour


def members_of(group: Group, rank: int, layout: ParallelLayout) -> tuple[int, ...]:
    """Return the ranks of the group that `rank` belongs to, in order.

    Rank order is Megatron's: tp fastest, then cp, dp, pp.

    >>> members_of(Spread("pass", 2, 4), 5, ParallelLayout(tp=4, dp=2, pp=2))
    (1, 5)
    >>> members_of(AcrossStages("norm", (0, 1)), 5, ParallelLayout(tp=4, dp=2, pp=2))
    (5, 13)
    """
    stage, place, each = _position(rank, layout)
    if isinstance(group, AcrossStages):
        return tuple(other * each + place for other in group.stages)
    first = _first(group.size, group.stride, place)
    return tuple(stage * each + first + group.stride * i for i in range(group.size))


def peer_of(peer: Peer, rank: int, layout: ParallelLayout) -> int:
    """Return the rank that `rank` sends to or receives from.

    >>> peer_of(Neighbour(2, 4, 1), 5, ParallelLayout(tp=4, dp=2, pp=2))
    1
    """
    stage, place, each = _position(rank, layout)
    if isinstance(peer, SamePlace):
        return peer.stage * each + place
    first = _first(peer.size, peer.stride, place)
    turn = ((place - first) // peer.stride + peer.step) % peer.size
    return stage * each + first + peer.stride * turn


def _position(rank: int, layout: ParallelLayout) -> tuple[int, int, int]:
    each = layout.tp * layout.cp * layout.dp
    return rank // each, rank % each, each


def _first(size: int, stride: int, place: int) -> int:
    return place // (size * stride) * size * stride + place % stride
