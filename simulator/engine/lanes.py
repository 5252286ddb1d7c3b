"""The streams of a step, each with its tasks and how long those take that nothing can lengthen."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from simulator.engine.players import Player
from simulator.engine.replicas import Replicas
from simulator.schedule.tasks import STREAMS, TaskGraph
from simulator.topology.graph import FloatArray, IntArray


class Lane:
    """Owns how far one stream of one replica is known; it runs its tasks one after another."""

    __slots__ = ("alone", "delays", "free", "place", "replica", "row", "stage", "tasks")

    def __init__(self, replica: int, row: int, stage: int, tasks: Sequence[int]) -> None:
        self.replica, self.row, self.stage, self.tasks = replica, row, stage, tasks
        self.delays: list[float | None] = []
        """Seconds of each task, None where others can lengthen it."""
        self.alone: list[float] = []
        """Seconds of each task if nothing lengthens it."""
        self.place = 0
        """In `tasks`, of the first one whose end is not known."""
        self.free = 0.0
        """When the task before that ends; when the task itself starts, once that is known."""

    def take_back(self, ends: list[float], moment: float) -> None:
        """Forget the ends of all tasks that end after a moment in seconds."""
        place = bisect_right(self.tasks, moment, key=ends.__getitem__)
        for task in self.tasks[place:]:
            ends[task] = math.inf
        self.place = place
        self.free = ends[self.tasks[place - 1]] if place else 0.0

    @property
    def is_over(self) -> bool:
        """Whether the end of its last task is known."""
        return self.place == len(self.tasks)


def lanes_of(
    graph: TaskGraph, replicas: Replicas, sizes: Sequence[int], player: Player
) -> list[Lane]:
    """Return the streams of all replicas that have any task.

    `sizes` is how many replicas meet at each task; those of more than one are neither's own.
    """
    streams, lanes = _tasks_of_streams(graph), []
    works, alone_here = np.asarray(graph.work), np.asarray(sizes) == 1
    for replica in range(replicas.count):
        alone = _seconds_alone(graph, replicas, replica, player)
        rows = enumerate(graph.works)
        sure_works = [player.is_sure(number, replica, work.stage) for number, work in rows]
        sure = np.asarray(sure_works)[works] & alone_here
        for stream, tasks in streams.items():
            stage = stream // STREAMS
            lane = Lane(replica, replica * graph.pp + stage, stage, tasks.tolist())
            seconds: list[float] = alone[tasks].tolist()
            known = zip(seconds, sure[tasks].tolist(), strict=True)
            lane.alone, lane.delays = (
                seconds,
                [delay if is_sure else None for delay, is_sure in known],
            )
            lanes.append(lane)
    return lanes


def _tasks_of_streams(graph: TaskGraph) -> dict[int, IntArray]:
    """Return the tasks of each stream that has any, in their order."""
    order = np.argsort(graph.stream, kind="stable")
    streams, starts = np.unique(np.asarray(graph.stream)[order], return_index=True)
    tasks = np.split(order, starts[1:])
    return dict(zip(streams.tolist(), tasks, strict=True))


def _seconds_alone(
    graph: TaskGraph, replicas: Replicas, replica: int, player: Player
) -> FloatArray:
    """Return how long each task of a replica takes if nothing lengthens it.

    What replicas do together takes what it costs the first of them.
    """
    slowdown = replicas.slowdown[replica]
    costs = [
        player.costs[replica - replica % replicas.meeting.get(work.kind, 1)][number]
        for number, work in enumerate(graph.works)
    ]
    of_works = [
        cost.seconds if cost.plans else cost.seconds * slowdown[work.stage]
        for work, cost in zip(graph.works, costs, strict=True)
    ]
    works = np.asarray(graph.work)
    seconds: FloatArray = np.asarray(of_works, dtype=np.float64)[works]
    if replicas.jitter is None:
        return seconds
    computes = np.asarray([not cost.plans for cost in costs])[works]
    return np.where(computes, seconds * replicas.jitter[replica], seconds)
