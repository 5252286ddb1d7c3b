"""Where data-parallel replicas wait for each other, and for how long they do."""

from __future__ import annotations

from simulator.engine.lanes import Lane
from simulator.engine.replicas import Replicas
from simulator.schedule.tasks import TaskGraph, WorkKind


def meeting_sizes(graph: TaskGraph, replicas: Replicas) -> list[int]:
    """Return how many replicas meet at each task; 1 where each does it alone."""
    if not replicas.meeting:
        return [1] * len(graph)
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


class Meetings:
    """Owns who waits for whom, and for how long they have."""

    def __init__(self, rows: int) -> None:
        self.open: dict[tuple[int, int], list[Lane]] = {}
        """The streams that have come to a task, by it and the number of their group."""
        self.waited = [0.0] * rows
        """Seconds that each stage of each replica has waited for the last one to come."""

    def arrive(self, lane: Lane, task: int, size: int) -> list[Lane]:
        """Let a stream come to a meeting of `size`, when it is free; the last one gets all.

        The others get none. All are in the order of their replicas.
        """
        key = task, lane.replica // size
        come = self.open.setdefault(key, [])
        come.append(lane)
        if len(come) < size:
            return []
        del self.open[key]
        start = max(each.free for each in come)
        for each in come:
            self.waited[each.row] += start - each.free
        return sorted(come, key=lambda each: each.replica)
