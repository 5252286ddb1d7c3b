"""What is written down for points that were not measured, and when the rest is given up."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

from calibrate.batches import Batch
from calibrate.ledger import Ledger
from calibrate.point_sizes import is_larger
from calibrate.records import Record, Status
from calibrate.run_events import Event, LeftOut, Note, PointEnded
from calibrate.verdict import Verdict
from calibrate.worker_messages import Task

MAX_LOSSES = 3
"""Lost points of a batch after which its rest is given up."""
_MAX_STARTS = 2
"""Times that the workers of a batch may fail to find each other."""


@dataclass(slots=True, kw_only=True)
class Losses:
    """Of one batch."""

    points: int = field(default=0)
    starts: int = field(default=0)

    def count(self, verdict: Verdict) -> None:
        """Take in a loss; running out of memory on a point is none, as larger ones are capped."""
        capped = verdict.status is Status.OUT_OF_MEMORY and verdict.index is not None
        self.points += not capped
        self.starts += not verdict.started

    @property
    def cannot_start(self) -> bool:
        """Whether workers do not find each other."""
        return self.starts >= _MAX_STARTS

    @property
    def enough(self) -> bool:
        """Whether the rest of the batch is to be given up."""
        return self.cannot_start or self.points >= MAX_LOSSES


def book(
    ledger: Ledger, batch: Batch, todo: Sequence[int], verdict: Verdict
) -> Generator[Event, None, list[int]]:
    """Record the lost point, and larger ones where it ran out of memory; return what is left."""
    index = verdict.index
    if index is None or index not in todo:
        yield Note(text=f"{batch.name}: workers were lost between points: {verdict.reason}")
        return list(todo)
    yield add(ledger, batch, index, verdict.status, verdict.reason)
    rest = [other for other in todo if other != index]
    if verdict.status is not Status.OUT_OF_MEMORY:
        return rest
    larger = [i for i in rest if is_larger(batch.points[i], than=batch.points[index])]
    for other in larger:
        reason = f"capped by a smaller point that ran out of memory: {verdict.reason}"
        yield add(ledger, batch, other, verdict.status, reason)
    return [other for other in rest if other not in larger]


def give_up(
    ledger: Ledger, batch: Batch, todo: Sequence[int], reason: str
) -> Generator[Event, None, None]:
    """Record points as failed that are not tried any more."""
    for index in todo:
        yield add(ledger, batch, index, Status.FAILED, f"given up: {reason}")


def add(ledger: Ledger, batch: Batch, index: int, status: Status, reason: str) -> PointEnded:
    """Record a point that has no time. Raises `InputError` where the disk is full."""
    record = Record(point=batch.points[index], status=status, reason=reason)
    ledger.add(record)
    return PointEnded(record=record, expected=expected_seconds(batch, [index]))


def left_out(batch: Batch, indexes: Sequence[int]) -> LeftOut:
    """Return the event that the budget was too short for some points."""
    seconds = expected_seconds(batch, indexes)
    return LeftOut(batch=batch.name, points=len(indexes), expected=seconds)


def expected_seconds(batch: Batch, indexes: Sequence[int]) -> float:
    """Return the seconds that some points of a batch should take."""
    task = Task(number=0, batch=batch)
    return sum(task.expected(index) for index in indexes)
