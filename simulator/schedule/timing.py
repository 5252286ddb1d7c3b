"""When every task of a graph ends, if each takes a known time."""

from __future__ import annotations

from collections.abc import Iterable

from simulator.schedule.tasks import STREAMS, TaskGraph


def task_ends(graph: TaskGraph, durations: Iterable[float]) -> list[float]:
    """Return the end of every task in seconds; `durations` are those of the tasks, in order.

    A task starts when its stream is free and what it waits for has ended:
    end = max(stream, first, second) + duration. One more entry, always 0, stands for "waits for
    nothing".
    """
    free = [0.0] * (STREAMS * graph.pp)
    ends = [0.0] * (len(graph) + 1)
    rows = zip(durations, graph.stream, graph.first, graph.second, strict=True)
    for task, (duration, stream, first, second) in enumerate(rows):
        begin = free[stream]
        # Comparisons instead of max(): this is the innermost loop of a search.
        if ends[first] > begin:  # noqa: PLR1730
            begin = ends[first]
        if ends[second] > begin:  # noqa: PLR1730
            begin = ends[second]
        free[stream] = ends[task] = begin + duration
    return ends
