"""A supervisor's surroundings without processes: a clock that tests turn, workers with a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from calibrate.batches import Batch, World
from calibrate.board import Board, LocalBoard
from calibrate.crew import Crew, Patience
from calibrate.identity import Identity
from calibrate.journal import append_line
from calibrate.lead import Lead
from calibrate.ledger import Ledger
from calibrate.limits import Limits
from calibrate.points import Direction, HostCopyPoint, Point
from calibrate.pulse import Pulse
from calibrate.records import Record
from calibrate.spawn import AtOnce, executed
from calibrate.worker_messages import Begun, Done, Job, Message, Ready

Script = Sequence[tuple[float, Message | int]]
"""Seconds from the start of a worker, and what it says then or the code it exits with."""
PATIENCE = Patience(start=100.0, point=10.0, silent=5.0)


def points(count: int) -> tuple[Point, ...]:
    """Copies of 1, 2, 3, ... bytes, which are one family."""
    return tuple(HostCopyPoint(direction=Direction.TO_HOST, bytes=i + 1) for i in range(count))


def batch(count: int = 3, **changes: object) -> Batch:
    """Points of one second each, on every rank."""
    fields = {"name": "all", "ranks": "all", "points": points(count), "seconds": float(count)}
    return Batch.model_validate({**fields, **changes})


def record(point: Point) -> Record:
    """What a worker writes of a point that took a second."""
    return Record(point=point, seconds=1.0, spread=0.0, samples=3)


def does(job: Job, count: int, start: float = 1.0) -> list[tuple[float, Message | int]]:
    """The script of a worker that measures the first `count` points of its job, one a second."""
    assert job.task.batch is not None
    script: list[tuple[float, Message | int]] = [(start, Ready())]
    for place, index in enumerate(job.task.todo[:count]):
        point = job.task.batch.points[index]
        script.append((start + place, Begun(index=index)))
        script.append((start + place + 1, Done(index=index, record=record(point))))
    return script


def does_all(job: Job) -> list[tuple[float, Message | int]]:
    """The script of a worker with which all goes well."""
    script = does(job, len(job.task.todo))
    return [*script, (script[-1][0] + 0.5, 0)]


@dataclass
class FakeClock:
    """Stands still but in `sleep`."""

    time: float = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


@dataclass
class FakeWorker:
    """Says what its script has, when its time has come, and keeps the journal as a real one."""

    script: Script
    clock: FakeClock
    journal: str
    began: float
    said: int = 0
    stopped: str = ""
    lines: tuple[str, ...] = ()
    ended: bool = False

    def messages(self) -> list[Message]:
        found = []
        for due, item in self.script[self.said :]:
            if due > self.clock.now() - self.began:
                break
            self.said += 1
            if isinstance(item, Done) and self.journal:
                append_line(Path(self.journal), item.record)
            if not isinstance(item, int):
                found.append(item)
        return found

    def exit_code(self) -> int | None:
        past = [item for due, item in self.script if due <= self.clock.now() - self.began]
        return next((item for item in past if isinstance(item, int)), None)

    def out_of_memory(self) -> bool:
        return False

    def state(self) -> str:
        return self.stopped

    def write_stack(self) -> None:
        self.lines = ('File "measure.py", line 1 in measure',)

    def last_lines(self) -> tuple[str, ...]:
        return self.lines

    def end(self) -> bool:
        self.ended = True
        return True


@dataclass
class Stage:
    """Rank 0 of a run with fake workers; `scripts` are those of the workers in turn."""

    folder: Path
    scripts: list[Callable[[Job], Script]]
    size: int = 1
    board: Board = field(default_factory=LocalBoard)
    clock: FakeClock = field(default_factory=FakeClock)
    workers: list[FakeWorker] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    budget: float | None = None
    signal: str = ""

    def start(self, job: Job, name: str) -> FakeWorker:
        self.jobs.append(job)
        script = self.scripts[len(self.jobs) - 1](job)
        worker = FakeWorker(script, self.clock, job.journal, self.clock.now())
        self.workers.append(worker)
        return worker

    def crew(self) -> Crew:
        who = Identity(world=World(size=self.size, local_size=self.size), host="host0")
        pulse = Pulse(
            identity=who,
            board=self.board,
            now=self.clock.now,
            sleep=self.clock.sleep,
            interrupted=lambda: self.signal,
            silent=PATIENCE.silent,
        )
        return Crew(
            identity=who,
            board=self.board,
            pulse=pulse,
            now=self.clock.now,
            start=self.start,
            starts=AtOnce(spawn=executed()),
            patience=PATIENCE,
            journal=str(self.folder / "measured.jsonl"),
        )

    def lead(self) -> Lead:
        ledger = Ledger(path=self.folder / "measured.jsonl")
        ledger.begin()
        return Lead(
            crew=self.crew(),
            ledger=ledger,
            device="cpu",
            backend="gloo",
            limits=Limits(),
            deadline=self.budget,
            start_seconds=1.0,
            number=1,
        )
