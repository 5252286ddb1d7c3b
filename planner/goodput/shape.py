"""What a simulated run is made of, and what becomes of it: plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf


class Cause(StrEnum):
    """What the wall time of a run goes into; the causes add up to it."""

    USEFUL = "useful"
    """Steps that count, at the speed of the whole cluster."""
    CHECKPOINT = "checkpoint"
    """Training waits for checkpoints that became safe."""
    LOST = "lost_work"
    """Done since the last safe checkpoint, and done again."""
    DETECTION = "detection"
    RESTART = "restart"
    """Scheduling, start, reading the checkpoint, warm-up; also of restarts that failed."""
    WAITING = "waiting"
    """For nodes to come back from repair."""
    DEGRADED = "degraded"
    """What steps take longer on fewer replicas."""
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A size on which the job can run."""

    nodes: int
    slowdown: float = 1.0
    """Time of a step over that on all nodes of the cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShape:
    """What is known of a run before chance comes in; times in seconds."""

    work: float
    """All steps on the whole cluster."""
    interval: float
    """Work between checkpoints."""
    stall: float
    """Training waits for a checkpoint."""
    write: float = 0.0
    """From there until it is in storage."""
    detection: float = 0.0
    restart: float = 0.0
    repair: float = 0.0
    """Mean."""
    levels: tuple[Level, ...]
    """Sizes to run on, the whole cluster first."""
    spares: int = 0
    """Nodes."""
    maintenance_every: float = inf
    maintenance: float = 0.0
    """Length of a planned stop."""
    saves_first: bool = True
    """Whether a planned stop begins with a checkpoint of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of one run."""

    wall: float
    """Seconds from the first step to the last checkpoint."""
    seconds: Mapping[Cause, float]
    failures: int
    saves: int = 0
    """Checkpoints that planned stops asked for."""
    events: int
    """Of SimPy."""

    @property
    def goodput(self) -> float:
        """Useful step time over wall time."""
        return self.seconds[Cause.USEFUL] / self.wall
