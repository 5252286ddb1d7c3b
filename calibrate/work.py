"""The points of one batch, one after another, in a worker; knows nothing of torch.

Every decision is taken on values that all ranks share, so that all measure the same points.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from calibrate.journal import append_line
from calibrate.measuring import Outcome, Ranks, TooLargeError
from calibrate.points import Point
from calibrate.records import Record, Status
from calibrate.worker_messages import Begun, Done, Failed, Job, LeftOut, Message, Trouble
from simulator.errors import InputError

_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory", re.IGNORECASE)
"""How torch, NCCL and allocators put it."""
_WORDS = 400
"""Characters of an error that go into a record; the log has all."""


class JournalError(Exception):
    """A record cannot be written; the cause is the system's error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One job in one worker."""

    job: Job
    measure: Callable[[Point], Outcome]
    ranks: Ranks
    say: Callable[[Message], None]
    now: Callable[[], float] = field(default=time.monotonic)


def do_work(work: Work) -> None:
    """Measure all points of the job that can end within its seconds.

    Raises:
        JournalError: a record could not be written.
        Exception: whatever measuring raised.
    """
    task = work.job.task
    assert task.batch is not None
    budget = _Budget(work=work, began=work.now())
    for index in task.todo:
        if not budget.allows(index):
            work.say(LeftOut(index=index))
            continue
        record = _measured(work, index, budget)
        budget.note(index)
        if work.job.journal:
            _write(Path(work.job.journal), record)
        work.say(Done(index=index, record=record))


def failure(error: BaseException) -> Failed:
    """Return what a worker says of the error that ends it."""
    if isinstance(error, JournalError):
        cause = error.__cause__
        number = cause.errno if isinstance(cause, OSError) else None
        return Failed(trouble=Trouble.DISK, reason=str(error), errno=number)
    text = f"{type(error).__name__}: {error}".strip()
    short = _short(text)
    trouble = Trouble.MEMORY if _is_memory(error, text) else Trouble.RAISED
    return Failed(trouble=trouble, reason=short)


def _short(text: str) -> str:
    return " ".join(text.split())[:_WORDS]


def _is_memory(error: BaseException, text: str) -> bool:
    return isinstance(error, MemoryError | TooLargeError) or bool(_OUT_OF_MEMORY.search(text))


@dataclass(slots=True, kw_only=True)
class _Budget:
    """The seconds of the job, which all ranks see go by alike."""

    work: Work
    began: float
    points: int = field(default=0)
    """That are done."""
    expected: float = field(default=0.0)
    """Seconds that these should have taken."""

    def note(self, index: int) -> None:
        """Take in that a point is done."""
        self.points += 1
        self.expected += self.work.job.task.expected(index)

    def allows(self, index: int) -> bool:
        """Return whether a point ends in time if it is as late as those before it were."""
        task = self.work.job.task
        if task.seconds is None:
            return True
        used = self.work.ranks.slowest(self.work.now() - self.began)
        late = max(0.0, used - self.expected) / self.points if self.points else 0.0
        return used + late + task.expected(index) <= task.seconds


def _measured(work: Work, index: int, budget: _Budget) -> Record:
    """Measure a point, once more where it is too noisy, and return the better of both."""
    task = work.job.task
    assert task.batch is not None
    point = task.batch.points[index]
    work.say(Begun(index=index))
    try:
        best = work.measure(point)
    except InputError as error:
        # What the software here cannot do fails on all ranks alike: no worker is lost by it.
        return Record(point=point, status=Status.FAILED, reason=_short(str(error)))
    spread = work.ranks.slowest(best.spread)
    attempt = 1
    if spread > task.limits.spread and budget.allows(index):
        attempt = 2
        work.say(Begun(index=index, attempt=attempt))
        again = work.measure(point)
        spread_again = work.ranks.slowest(again.spread)
        best, spread = (again, spread_again) if spread_again < spread else (best, spread)
    return _record(point, best, attempt=attempt, spread=spread, limit=task.limits.spread)


def _record(point: Point, outcome: Outcome, *, attempt: int, spread: float, limit: float) -> Record:
    noisy = spread > limit
    return Record(
        point=point,
        status=Status.NOISY if noisy else Status.OK,
        seconds=outcome.seconds,
        spread=spread,
        samples=outcome.samples,
        outliers=outcome.outliers,
        attempt=attempt,
        by_rank=tuple(outcome.by_rank),
        values=dict(outcome.values),
        algorithm=outcome.algorithm,
        protocol=outcome.protocol,
        clocks=outcome.clocks,
        reason=f"spread {spread:.1%}, the limit is {limit:.1%}" if noisy else "",
    )


def _write(journal: Path, record: Record) -> None:
    try:
        append_line(journal, record)
    except OSError as error:
        raise JournalError(error.strerror or str(error)) from error
