"""Data-parallel replicas that differ: each is played on its own, and they meet at collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from simulator.cost.plan import LinkKind
from simulator.cost.priced import WorkCost
from simulator.schedule.tasks import WorkKind
from simulator.topology.graph import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """How the replicas of a step differ, and where they wait for each other."""

    count: int
    slowdown: Sequence[Sequence[float]]
    """[replica][stage] factors of compute times; 1 for a healthy stage."""
    meeting: Mapping[WorkKind, int] = field(default_factory=dict)
    """How many consecutive replicas meet for a work of each kind, a divisor of `count`; a kind
    that is absent each replica does alone. JOIN stands for the one that the update waits for: the
    gradient norm. What meets costs what it costs the first of its replicas."""
    costs: Sequence[Sequence[WorkCost]] | None = None
    """[replica][work] where replicas differ, which may be one object many times; None: all cost
    what the step does."""
    jitter: FloatArray | None = None
    """(replica, task) factors of compute times."""
    links: Sequence[Mapping[LinkKind, float]] | None = None
    """[replica x pp + stage] bytes/s of each kind of link of a rank there; None: all have what the
    step says."""

    def __post_init__(self) -> None:
        assert len(self.slowdown) == self.count, "one row of slowdowns a replica"
        assert all(self.count % size == 0 for size in self.meeting.values()), self.meeting
        assert self.costs is None or len(self.costs) == self.count
        assert self.jitter is None or len(self.jitter) == self.count
        assert self.links is None or len(self.links) % self.count == 0

    def factor(self, replica: int, stage: int, task: int) -> float:
        """Return the factor of the compute time of a task."""
        drawn = 1.0 if self.jitter is None else float(self.jitter[replica, task])
        return self.slowdown[replica][stage] * drawn
