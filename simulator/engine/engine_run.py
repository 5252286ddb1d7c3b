"""What playing a step yields."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from simulator.engine.record import Utilisation
from simulator.engine.routes import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """What an event run yields: start and end of every task, and what the links carried."""

    starts: Sequence[Sequence[float]]
    """[replica][task] seconds; a collective starts when its own replica comes to it."""
    ends: Sequence[Sequence[float]]
    """[replica][task] seconds."""
    events: int
    """That SimPy processed; 0 where nothing could lengthen any task."""
    played: int
    """Tasks that were processes, a meeting of replicas once; all others were timed ahead."""
    carried: Mapping[Link, float]
    """Bytes that each link carried in the step."""
    waited: Sequence[Sequence[float]]
    """[replica][stage] seconds, all meetings together, until the last other replica had come."""
    utilisation: Mapping[Hashable, Utilisation] = field(default_factory=dict)
    """What each link carried over time, background included, where the fabric was recorded."""

    @property
    def pace(self) -> int:
        """The replica that the others waited for: the one that has waited least."""
        totals = [sum(stages) for stages in self.waited]
        return totals.index(min(totals))

    @property
    def start(self) -> Sequence[float]:
        """When each task of the replica that sets the pace started, seconds."""
        return self.starts[self.pace]

    @property
    def end(self) -> Sequence[float]:
        """When each task of the replica that sets the pace ended, seconds."""
        return self.ends[self.pace]

    @property
    def step_time(self) -> float:
        """End of the last task of any replica, seconds."""
        return max(max(ends) for ends in self.ends)
