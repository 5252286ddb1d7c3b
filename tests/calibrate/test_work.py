"""A worker repeats what is noisy, keeps to the budget and says why it gives up."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from calibrate.batches import World
from calibrate.journal import read_journal
from calibrate.measuring import Alone, Outcome, TooLargeError
from calibrate.points import Point
from calibrate.records import Record
from calibrate.work import JournalError, Work, do_work, failure
from calibrate.worker_messages import Begun, Done, Failed, Job, LeftOut, Message, Task, Trouble
from tests.calibrate.fake_crew import batch


def job(count: int = 2, *, journal: str = "", seconds: float | None = None) -> Job:
    task = Task(
        number=1,
        device="cpu",
        batch=batch(count),
        todo=tuple(range(count)),
        seconds=seconds,
    )
    return Job(task=task, parent=1, start_limit=1.0, world=World(), journal=journal)


class Spreads:
    """A measuring function whose calls have these spreads, and take a second each."""

    def __init__(self, *spreads: float) -> None:
        self.spreads = list(spreads)
        self.time = 0.0
        self.step = 1.0

    def __call__(self, point: Point) -> Outcome:
        self.time += self.step
        return Outcome(seconds=1.0, spread=self.spreads.pop(0), samples=9)


def said(given: Job, measure: Spreads | Callable[[Point], Outcome]) -> list[Message]:
    messages: list[Message] = []
    now = (lambda: measure.time) if isinstance(measure, Spreads) else (lambda: 0.0)
    do_work(Work(job=given, measure=measure, ranks=Alone(), say=messages.append, now=now))
    return messages


def records(messages: list[Message]) -> list[Record]:
    return [message.record for message in messages if isinstance(message, Done)]


def test_a_quiet_point_is_measured_once() -> None:
    (record,) = records(said(job(1), Spreads(0.05)))
    assert (record.status, record.attempt) == ("ok", 1)


def test_a_noisy_point_is_repeated_and_the_better_one_kept() -> None:
    (record,) = records(said(job(1), Spreads(0.5, 0.05)))
    assert (record.status, record.attempt, record.spread) == ("ok", 2, 0.05)


def test_a_point_that_stays_noisy_says_so() -> None:
    (record,) = records(said(job(1), Spreads(0.5, 0.6)))
    assert (record.status, record.spread, record.reason) == (
        "noisy",
        0.5,
        "spread 50.0%, the limit is 10.0%",
    )


def test_every_attempt_is_announced_so_that_the_clock_starts_anew() -> None:
    begun = [m for m in said(job(1), Spreads(0.5, 0.6)) if isinstance(m, Begun)]
    assert begun == [Begun(index=0, attempt=1), Begun(index=0, attempt=2)]


def test_points_that_cannot_end_in_time_are_left_out() -> None:
    left = [m for m in said(job(4, seconds=2.5), Spreads(0, 0, 0)) if isinstance(m, LeftOut)]
    assert left == [LeftOut(index=2), LeftOut(index=3)]


def test_points_are_taken_to_be_as_late_as_those_before_them() -> None:
    late = Spreads(0, 0)
    late.step = 3.0  # Each should take one second.
    left = [m for m in said(job(4, seconds=8.0), late) if isinstance(m, LeftOut)]
    assert left == [LeftOut(index=2), LeftOut(index=3)]


def test_a_record_is_on_disk_before_it_is_told(tmp_path: Path) -> None:
    path = tmp_path / "measured.jsonl"
    on_disk: list[int] = []

    def say(message: Message) -> None:
        if isinstance(message, Done):
            on_disk.append(len(read_journal(path).lines))

    given = job(2, journal=str(path))
    do_work(Work(job=given, measure=Spreads(0, 0), ranks=Alone(), say=say))
    assert on_disk == [1, 2]


def test_a_journal_that_cannot_be_written_is_told_apart(tmp_path: Path) -> None:
    with pytest.raises(JournalError) as caught:
        said(job(1, journal=str(tmp_path / "none" / "measured.jsonl")), Spreads(0))
    assert failure(caught.value) == Failed(
        trouble=Trouble.DISK, reason="No such file or directory", errno=errno.ENOENT
    )


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (MemoryError(), Trouble.MEMORY),
        (TooLargeError("60 GB"), Trouble.MEMORY),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), Trouble.MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), Trouble.MEMORY),
        (RuntimeError("NCCL error: unhandled system error"), Trouble.RAISED),
    ],
)
def test_errors_of_memory_are_told_apart(error: Exception, trouble: Trouble) -> None:
    assert failure(error).trouble is trouble
