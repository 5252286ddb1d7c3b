"""A communication plan: what one collective asks of the links, phase by phase."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.parallel.groups import Collective, GroupShape
from simulator.results import Category


class LinkKind(StrEnum):
    """The link of a rank that a phase loads."""

    SCALE_UP = "scale-up"
    SCALE_OUT = "scale-out"
    HOST = "host"
    """PCIe or C2C between an accelerator and its host memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What a flow puts on the network: classes of links, and the bytes on each for a wire byte.

    A class is links of equal capacity that all works of a step load equally.
    """

    links: tuple[int, ...]
    """Classes of links, all different."""
    weights: tuple[float, ...]
    """Bytes on one link of each class for each byte that a rank sends, above 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommPhase:
    """One phase: `fixed` seconds in which no link is loaded, then a flow of `wire_bytes` a rank.

    The flow has a private cap of `rate` bytes/s, so that alone the phase takes exactly `seconds`;
    concurrent flows on the same link share it max-min fairly.
    """

    link: LinkKind
    fixed: float
    wire_bytes: float
    """Bytes that each rank puts on its link (per direction)."""
    rate: float
    """Bytes/s of the flow when nothing else uses the link."""
    over: Load | None = None
    """What it loads of a network; None is one link of each rank, of kind `link`, with weight 1."""

    @property
    def seconds(self) -> float:
        """Duration alone, seconds."""
        return self.fixed + (self.wire_bytes / self.rate if self.wire_bytes else 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """What one kind of collective sends in a pass, with the compute of the pass beside it."""

    category: Category
    phase: CommPhase
    """The parts of the collectives that load no shared link are its `fixed` seconds."""
    beside: float = 0.0
    """Seconds of compute that run from the start of the phase on; 0 where the pass waits for it."""

    @property
    def seconds(self) -> float:
        """Seconds of the pass that it fills when nothing else uses the links."""
        return max(self.phase.seconds, self.beside)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommPlan:
    """One collective of `payload` bytes over `group`, as `algorithm` does it.

    `payload` follows nccl-tests: all-gather total output, reduce-scatter total input, all-to-all
    what each rank sends in total, all others the buffer of one rank.
    """

    collective: Collective
    algorithm: str
    payload: float
    group: GroupShape
    phases: tuple[CommPhase, ...]

    @property
    def seconds(self) -> float:
        """Duration alone, seconds: phases follow each other."""
        return sum(phase.seconds for phase in self.phases)
