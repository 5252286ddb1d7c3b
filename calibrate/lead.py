"""Rank 0's part: give a batch to all ranks, judge how it ended, and go on with what is left."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from calibrate.attend import attend
from calibrate.batches import Batch
from calibrate.board import task_name
from calibrate.collect import collect
from calibrate.crew import Crew, Report
from calibrate.ledger import Ledger
from calibrate.limits import Limits
from calibrate.losses import Losses, book, expected_seconds, give_up, left_out
from calibrate.pulse import RunEndedError
from calibrate.run_events import BatchBegun, Event, Note, PointBegun, PointEnded
from calibrate.verdict import Verdict, judge
from calibrate.worker_messages import Begun, Done, Message, Task, Trouble


@dataclass(slots=True, kw_only=True)
class Lead:
    """Rank 0 in one run."""

    crew: Crew
    ledger: Ledger
    device: Literal["cpu", "cuda"]
    backend: str
    """Of torch.distributed; empty where there is one rank."""
    limits: Limits
    deadline: float | None
    """On this process's clock, of the whole run; None is without end."""
    start_seconds: float
    """That a worker needs before its first point, as seen."""
    number: int
    """Of the next task that all ranks are given."""
    broken: str = field(default="")
    """Why workers of several ranks cannot be started; empty while they can."""

    def is_shared(self, batch: Batch) -> bool:
        """Return whether all ranks measure a batch together."""
        return batch.ranks == "all" and self.crew.identity.world.size > 1

    def has_time(self, batch: Batch, todo: Sequence[int]) -> bool:
        """Return whether the budget is enough to start workers and measure the shortest point."""
        if self.deadline is None:
            return True
        shortest = min(expected_seconds(batch, [index]) for index in todo)
        return self.crew.now() + self.start_seconds + shortest <= self.deadline

    def next_task(self, batch: Batch, todo: Sequence[int]) -> Task:
        """Return a task, and count it where the other ranks, which count too, are given it."""
        number = self.number
        self.number += self.is_shared(batch)
        left = None if self.deadline is None else max(0.0, self.deadline - self.crew.now())
        return Task(
            number=number,
            device=self.device,
            backend=self.backend,
            limits=self.limits,
            batch=batch,
            todo=tuple(todo),
            seconds=left,
        )


def measure_batch(lead: Lead, batch: Batch) -> Iterator[Event]:
    """Measure what has no record yet, and yield what happens.

    Raises:
        RunEndedError: the run cannot go on.
        InputError: the disk is full.
    """
    todo = [i for i, point in enumerate(batch.points) if not lead.ledger.has(point)]
    if todo and lead.broken and lead.is_shared(batch):
        yield from give_up(lead.ledger, batch, todo, lead.broken)
        return
    if todo and lead.has_time(batch, todo):
        yield BatchBegun(name=batch.name, points=len(todo))
    losses = Losses()
    while todo:
        verdict = None
        if lead.has_time(batch, todo):
            verdict = yield from _attempt(lead, batch, todo)
            todo = [index for index in todo if not lead.ledger.has(batch.points[index])]
        if verdict is None:
            if todo:
                yield left_out(batch, todo)
            return
        losses.count(verdict)
        todo = yield from book(lead.ledger, batch, todo, verdict)
        if losses.enough:
            yield from _stop(lead, batch, todo, losses, verdict)
            return


def _stop(
    lead: Lead, batch: Batch, todo: Sequence[int], losses: Losses, verdict: Verdict
) -> Iterator[Event]:
    """Give up the rest of a batch, and all shared ones where ranks do not find each other."""
    if losses.cannot_start:
        reason = f"workers cannot be started: {verdict.reason}"
        lead.broken = reason if lead.is_shared(batch) else lead.broken
    else:
        reason = f"{losses.points} points were lost, the last one because: {verdict.reason}"
    yield from give_up(lead.ledger, batch, todo, reason)


def _attempt(
    lead: Lead, batch: Batch, todo: Sequence[int]
) -> Generator[Event, None, Verdict | None]:
    """Start workers for points and return what was lost, once all of them have ended."""
    crew, shared = lead.crew, lead.is_shared(batch)
    task = lead.next_task(batch, todo)
    if shared:
        crew.board.post(task_name(task.number), task.model_dump_json())
    own = yield from _listen(crew, task, shared=shared)
    reports = collect(crew, task, own) if shared else [own]
    for note in lead.ledger.refresh():
        yield Note(text=note)
    if own.trouble is Trouble.DISK:
        raise lead.ledger.full(own.errno, own.reason)
    for report in reports:
        if report.unkillable:
            raise RunEndedError(f"the worker of rank {report.rank} ({report.host}) cannot be ended")
    return judge(reports)


def _listen(crew: Crew, task: Task, *, shared: bool) -> Generator[Event, None, Report]:
    messages = attend(crew, task, shared=shared)
    while True:
        try:
            message = next(messages)
        except StopIteration as end:
            report: Report = end.value
            return report
        event = _event(task, message)
        if event is not None:
            yield event


def _event(task: Task, message: Message) -> Event | None:
    assert task.batch is not None
    match message:
        case Begun():
            point = task.batch.points[message.index]
            return PointBegun(point=point, attempt=message.attempt)
        case Done():
            return PointEnded(record=message.record, expected=task.expected(message.index))
        case _:
            return None
