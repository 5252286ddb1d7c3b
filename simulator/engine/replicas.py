"""Data-parallel replicas that differ: each is played on its own, and they meet at collectives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import simpy

from simulator.cost.plan import LinkKind
from simulator.cost.priced import WorkCost
from simulator.schedule.tasks import STREAMS, TaskGraph, WorkKind
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


def meeting_sizes(graph: TaskGraph, replicas: Replicas) -> list[int]:
    """Return how many replicas meet at each task; 1 where each does it alone."""
    sizes = [replicas.meeting.get(work.kind, 1) for work in graph.works]
    norm = _gradient_norm(graph)
    joins = [work.kind is WorkKind.JOIN for work in graph.works]
    return [
        1 if joins[work] and task not in norm else sizes[work]
        for task, work in enumerate(graph.work)
    ]


def _gradient_norm(graph: TaskGraph) -> set[int]:
    """Return the joins that an update waits for; others only gather what a task waits for."""
    updates = [work.kind is WorkKind.OPTIMIZER for work in graph.works]
    return {graph.first[task] for task, work in enumerate(graph.work) if updates[work]}


@dataclass(slots=True, eq=False)
class Meeting:
    """The replicas that have come to one task of all of them."""

    over: simpy.Event
    arrivals: list[tuple[int, float]] = field(default_factory=list)
    """Row of each one that waits, and when it came."""


class Meetings:
    """Owns who waits for whom, and for how long they have."""

    def __init__(self, env: simpy.Environment, rows: int) -> None:
        self.env = env
        self.open: dict[tuple[int, int], Meeting] = {}
        self.waited = [0.0] * rows
        """Seconds that each stage of each replica has waited for the last one to come."""

    def arrive(self, row: int, task: int, group: int, size: int) -> tuple[Meeting, bool]:
        """Return the meeting of a group at a task, and whether this is the last one to come."""
        meeting = self.open.get((task, group))
        if meeting is None:
            meeting = self.open[task, group] = Meeting(self.env.event())
        now = self.env.now
        meeting.arrivals.append((row, now))
        if len(meeting.arrivals) < size:
            return meeting, False
        del self.open[task, group]
        for other, came in meeting.arrivals:
            self.waited[other] += now - came
        return meeting, True


def lane_tasks(graph: TaskGraph) -> dict[int, list[int]]:
    """Return the tasks of each stream that has any, in their order."""
    lanes: dict[int, list[int]] = {}
    for task, lane in enumerate(graph.stream):
        lanes.setdefault(lane, []).append(task)
    return {lane: lanes[lane] for lane in range(STREAMS * graph.pp) if lane in lanes}
