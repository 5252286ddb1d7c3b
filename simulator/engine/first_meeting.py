"""When two tasks first use one link or GPU at the same time, if each takes as long as alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np

from simulator.engine.lanes import Lane
from simulator.schedule.tasks import TaskGraph
from simulator.schedule.timing import task_ends
from simulator.topology.graph import FloatArray


def first_meeting(
    graph: TaskGraph,
    shared: Mapping[int, Collection[Hashable]],
    start: FloatArray,
    end: FloatArray,
) -> float:
    """Return the moment in seconds; infinite where no task ever meets another one.

    `start` and `end` are those of each task, `shared` what each work uses that others use too. A
    task counts as using all of it from its start to its end, so that the true moment may be later,
    but never earlier.
    """
    users: dict[Hashable, list[int]] = {}
    for work, used in shared.items():
        for thing in used:
            users.setdefault(thing, []).append(work)
    works_of_tasks = np.asarray(graph.work)
    uses = np.zeros(len(graph.works), dtype=bool)
    earliest = math.inf
    for works in users.values():
        uses[:] = False
        uses[works] = True
        (tasks,) = np.nonzero(uses[works_of_tasks])
        tasks = tasks[np.lexsort((end[tasks], start[tasks]))]
        # Up to the first two that overlap, ends rise with starts.
        (overlaps,) = np.nonzero(start[tasks[1:]] < end[tasks[:-1]])
        if len(overlaps):
            earliest = min(earliest, float(start[tasks[overlaps[0] + 1]]))
    return earliest


def times_alone(graph: TaskGraph, lanes: Sequence[Lane]) -> tuple[FloatArray, FloatArray]:
    """Return ends and starts of all tasks of one replica in seconds, as if each were alone.

    One more end, always 0, stands for "waits for nothing".
    """
    durations = np.empty(len(graph))
    for lane in lanes:
        durations[lane.tasks] = lane.alone
    ends = np.asarray(task_ends(graph, durations.tolist()))
    starts = np.maximum(ends[np.asarray(graph.first)], ends[np.asarray(graph.second)])
    for lane in lanes:
        after = lane.tasks[1:]
        starts[after] = np.maximum(starts[after], ends[lane.tasks[:-1]])
    return ends, starts
