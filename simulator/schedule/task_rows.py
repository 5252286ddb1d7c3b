"""The growing tasks of one graph."""

from __future__ import annotations

from simulator.schedule.tasks import NO_TASK, STREAMS, StreamKind, TaskGraph, Work, WorkKind

_MAX_WAITS = 2
"""Explicit dependencies a task; more are joined first."""

FIELDS = 5
"""Of a task: number of the work, lane, both dependencies and micro-batch; see `TaskGraph`."""


class TaskRows:
    """Owns the tasks of a graph while it grows, and the numbers of its works."""

    def __init__(self, pp: int) -> None:
        self.pp = pp
        self.fields: list[int] = []
        """`FIELDS` of each task, one after another: nothing that the garbage collector visits."""
        self.works: dict[Work, int] = {}
        self.last = [NO_TASK] * (STREAMS * pp)
        """Last task of each lane: `STREAMS` x stage + `StreamKind`."""

    def number(self, work: Work) -> int:
        """Return the number of a work."""
        return self.works.setdefault(work, len(self.works))

    def append(
        self, work: int, lane: int, first: int, second: int, micro_batch: int = NO_TASK
    ) -> int:
        """Append a task of a numbered work and return its own number."""
        task = self.last[lane] = len(self.fields) // FIELDS
        self.fields += (work, lane, first, second, micro_batch)
        return task

    def add(self, work: Work, stream: StreamKind, *after: int) -> int:
        """Append a task that may wait for any others, joined down to two; return its number."""
        waits = [task for task in after if task != NO_TASK]
        while len(waits) > _MAX_WAITS:
            joined = self.add(Work(WorkKind.JOIN, work.stage), StreamKind.DATA, *waits[:2])
            waits = [*waits[2:], joined]
        first, second = (*waits, NO_TASK, NO_TASK)[:2]
        return self.append(self.number(work), STREAMS * work.stage + stream, first, second)

    def graph(self) -> TaskGraph:
        """Return the tasks as they are now."""
        columns = (tuple(self.fields[field::FIELDS]) for field in range(FIELDS))
        work, stream, first, second, micro_batch = columns
        return TaskGraph(
            works=tuple(self.works),
            work=work,
            stream=stream,
            first=first,
            second=second,
            micro_batch=micro_batch,
            pp=self.pp,
        )
