"""A step as a trace: what each rank does, what each node of it waits for, and with whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from simulator.parallel.groups import Collective

EVERY_RANK = 0
"""Number of the group of all ranks; it needs no entry in `Workload.groups`."""


class NodeKind(StrEnum):
    """What a node of a trace is."""

    COMPUTE = "compute"
    SEND = "send"
    RECEIVE = "receive"
    COLLECTIVE = "collective"
    LOAD = "load"
    """From host (remote) memory to the accelerator."""
    STORE = "store"
    """From the accelerator to host (remote) memory."""
    NOTHING = "nothing"
    """Takes no time: metadata, or a node that a converter could not tell what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceNode:
    """One thing that one rank does once all of `after` has been done."""

    number: int
    name: str
    kind: NodeKind
    after: tuple[int, ...]
    """Numbers of nodes of the same rank."""
    seconds: float = 0.0
    """How long it takes alone, as the trace says; 0 where it does not."""
    flops: float = 0.0
    """FLOP of a compute node; 0 where not known."""
    size: float = 0.0
    """Bytes that this rank puts in: its part of an all-gather, its whole buffer of any other
    collective, the message, or what is copied."""
    collective: Collective | None = None
    """Of a COLLECTIVE node."""
    group: int = EVERY_RANK
    """Which ranks do the collective together."""
    peer: int = -1
    """The other rank of a message."""
    tag: int = 0
    """Tells messages of the same two ranks apart."""
    algorithm: str | None = None
    """Of a collective; None is the library's choice."""
    network_share: float = 1.0
    """As in `CommWork`."""
    on_cpu: bool = False
    """Whether a compute node runs on the host."""
    on_request: bool = False
    """Whether a message is on its way only once its receiver is there, too."""


RankTrace = tuple[TraceNode, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The traces of all ranks, rank 0 first, and the groups that they talk of."""

    ranks: tuple[RankTrace, ...]
    groups: Mapping[int, tuple[int, ...]]
    """Ranks of each group, in its order; `EVERY_RANK` is not among them."""
    where: str = ""
    """Where it comes from, for messages."""

    def members(self, group: int) -> tuple[int, ...]:
        """Return the ranks of a group."""
        return tuple(range(len(self.ranks))) if group == EVERY_RANK else self.groups[group]


def payload_of(node: TraceNode, members: int) -> float:
    """Return the payload of a collective in the convention of nccl-tests, from a rank's bytes.

    An all-gather counts its total output, all others what a rank puts in.

    >>> node = TraceNode(
    ...     number=0,
    ...     name="",
    ...     kind=NodeKind.COLLECTIVE,
    ...     after=(),
    ...     size=10.0,
    ...     collective=Collective.ALL_GATHER,
    ... )
    >>> payload_of(node, 4)
    40.0
    """
    return node.size * members if node.collective is Collective.ALL_GATHER else node.size


def size_of(collective: Collective, payload: float, members: int) -> float:
    """Return the bytes that a rank puts into a collective; the inverse of `payload_of`."""
    return payload / members if collective is Collective.ALL_GATHER else payload
