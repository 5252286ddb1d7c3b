"""Process groups as the network sees them: how many ranks, over how many scale-up domains."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class Collective(StrEnum):
    """What a group does together; sizes follow the nccl-tests convention (see `CommWork`)."""

    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "alltoall"
    BROADCAST = "broadcast"
    REDUCE = "reduce"
    SEND_RECV = "sendrecv"
    HOST_COPY = "hostcopy"
    """Not of a group: bytes between an accelerator and its host memory, one way."""


def bus_factor(collective: Collective, ranks: int) -> float:
    """Return bus bandwidth over algorithm bandwidth, as nccl-tests counts it.

    Of sizes in its convention it is the bytes that each rank sends over the size. Source:
    nccl-tests, doc/PERFORMANCE.md.

    >>> bus_factor(Collective.ALL_REDUCE, 8), bus_factor(Collective.ALL_GATHER, 8)
    (1.75, 0.875)
    """
    match collective:
        case Collective.ALL_REDUCE:
            return 2 * (ranks - 1) / ranks
        case Collective.ALL_GATHER | Collective.REDUCE_SCATTER | Collective.ALL_TO_ALL:
            return (ranks - 1) / ranks
        case _:
            return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShape:
    """A group of `size` ranks, `per_domain` of them in each scale-up domain it touches.

    Ranks are spread evenly: `size` is a multiple of `per_domain`.

    >>> GroupShape(size=16, per_domain=8).domains
    2
    """

    size: int
    per_domain: int
    stride: int = field(default=0, compare=False, repr=False)
    """Ranks between one member and the next, which say where the group lies; 0 where they are not
    evenly apart. Time alone does not depend on it."""

    def __post_init__(self) -> None:
        assert self.size >= 1, self
        assert self.per_domain >= 1, self
        assert self.size % self.per_domain == 0, self

    @property
    def domains(self) -> int:
        """Scale-up domains that the group spans; 1 means that no NIC is used."""
        return self.size // self.per_domain
