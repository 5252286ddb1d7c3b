"""What one supervisor has at hand; everything that acts on the outside world is a field of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from calibrate.batches import World
from calibrate.board import Board
from calibrate.identity import Identity
from calibrate.pulse import Pulse
from calibrate.spawn import Starts
from calibrate.worker_messages import Job, Message, Store, Task, Trouble
from simulator.files import FileRecord

SLACK = 5.0
"""Times its expected duration that a point may take, on top of `Patience.point`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait, seconds; choices, not properties of a machine."""

    start: float = 180.0
    """For a worker to be ready: torch is read, the device is up, all ranks have met."""
    point: float = 60.0
    """For a point, beside `SLACK` times what it should take."""
    silent: float = 30.0
    """For a sign of life of another rank."""


class Worker(Protocol):
    """A running worker."""

    def messages(self) -> Sequence[Message]:
        """Return what it has said since the last call."""

    def exit_code(self) -> int | None:
        """Return the exit code, minus the signal where one ended it; None while it runs."""

    def out_of_memory(self) -> bool:
        """Return whether the system has killed processes for memory since it was started."""

    def state(self) -> str:
        """Return "stopped" where a signal has stopped it; else nothing."""

    def write_stack(self) -> None:
        """Make it write to its log where it is."""

    def last_lines(self) -> tuple[str, ...]:
        """Return the last lines of its log."""

    def end(self) -> bool:
        """End it and all that it has started; return whether all are gone."""


class Ending(StrEnum):
    """How a rank's part of a task ended."""

    DONE = "done"
    """The worker has ended by itself, with everything done or left out."""
    RAISED = "raised"
    DIED = "died"
    STOPPED = "stopped"
    """Rank 0 said so, because of another rank."""
    LATE = "late"
    """The clock of rank 0 ran out."""
    BUDGET = "budget"
    """The time for the whole run was over."""


class Report(FileRecord):
    """What became of one rank's worker in one task."""

    rank: int
    host: str
    ending: Ending
    ready: bool = False
    """Whether it had found the others."""
    index: int | None = None
    """Point in progress."""
    trouble: Trouble | None = None
    reason: str = ""
    errno: int | None = None
    """Where the journal could not be written."""
    exit_code: int | None = None
    state: str = ""
    unkillable: bool = False
    """Whether the kernel holds on to it."""
    lines: tuple[str, ...] = ()
    """The last of its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """One supervisor: who it is, whom it can talk to, how it starts workers."""

    identity: Identity
    board: Board
    pulse: Pulse
    now: Callable[[], float]
    start: Callable[[Job, str], Worker]
    """From a job and the name of the log."""
    starts: Starts
    """What `start` starts workers with."""
    patience: Patience
    journal: str
    """File that rank 0's workers append to."""

    def await_starts(self) -> None:
        """Return when workers start at once. Raises `RunEndedError` where the run cannot go on."""
        end = self.now() + self.patience.start
        while not self.starts.settled() and self.now() < end:
            self.pulse.tick()
        if not self.starts.settled():
            self.starts.give_up()

    @property
    def leads(self) -> bool:
        """Whether this is rank 0, which decides."""
        return self.identity.rank == 0

    def job(self, task: Task) -> Job:
        """Return what this rank's worker does for a task."""
        who = self.identity
        together = task.batch is not None and task.batch.ranks == "all" and who.world.size > 1
        return Job(
            task=task,
            parent=os.getpid(),
            rank=who.rank if together else 0,
            local_rank=who.local_rank,
            world=who.world if together else World(),
            store=_store(who, task.number) if together else None,
            start_limit=self.patience.start,
            journal=self.journal if self.leads and task.batch else "",
        )


def _store(who: Identity, number: int) -> Store:
    return Store(host=who.master, port=who.port, prefix=f"traincast/workers/{number}")
