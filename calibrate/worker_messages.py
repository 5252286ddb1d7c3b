"""What a supervisor tells its worker, and what the worker answers: one JSON line each."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from calibrate.batches import Batch, DeviceFacts, World
from calibrate.limits import Limits
from calibrate.records import Record
from simulator.files import FileRecord


class Task(FileRecord):
    """What all supervisors do next, as rank 0 has decided it."""

    number: int = Field(ge=0)
    """Counts all tasks of a run; names on the board and of the store's prefix hold it."""
    device: Literal["", "cpu", "cuda"] = ""
    """Empty: an accelerator where there is one."""
    backend: str = ""
    """Of torch.distributed; empty where nothing is communicated."""
    limits: Limits = Limits()
    batch: Batch | None = None
    """None: only find out what the device is."""
    todo: tuple[int, ...] = ()
    """Indexes of the batch's points that have no record yet, in order."""
    seconds: float | None = None
    """Left of the budget; None is without end."""

    @property
    def name(self) -> str:
        """Of the batch; logs are named by it."""
        return self.batch.name if self.batch else "probe"

    def expected(self, index: int) -> float:
        """Return the seconds that a point of the batch should take."""
        assert self.batch is not None
        each = self.batch.each
        return each[index] if each else self.batch.seconds / len(self.batch.points)


class Store(FileRecord):
    """Where the workers of a batch find each other."""

    host: str
    port: int
    prefix: str
    """Of all names in the store; no two batches share one."""


class Job(FileRecord):
    """The first line that a worker reads."""

    task: Task
    parent: int
    """Process id of the supervisor; the worker ends with it."""
    rank: int = 0
    local_rank: int = 0
    world: World = World()
    """Of the workers of this batch."""
    store: Store | None = None
    """None: this worker is alone."""
    start_limit: float = Field(gt=0)
    """Seconds within which all workers must have found each other."""
    journal: str = ""
    """File that rank 0 appends to; empty on the others."""


class Ready(FileRecord):
    """The worker has its device and has found the others."""

    says: Literal["ready"] = "ready"


class Facts(FileRecord):
    """What the device is."""

    says: Literal["facts"] = "facts"
    facts: DeviceFacts


class Begun(FileRecord):
    """A point is begun; once more where it is repeated."""

    says: Literal["begun"] = "begun"
    index: int
    attempt: int = 1


class Done(FileRecord):
    """A point is measured and, where this worker keeps the journal, on disk."""

    says: Literal["done"] = "done"
    index: int
    record: Record


class LeftOut(FileRecord):
    """A point was not begun, as it would not have ended within the budget."""

    says: Literal["left_out"] = "left_out"
    index: int


class Trouble(StrEnum):
    """Why a worker gives up."""

    MEMORY = "memory"
    RAISED = "raised"
    DISK = "disk"
    """The journal cannot be written."""


class Failed(FileRecord):
    """The worker ends; its log says more."""

    says: Literal["failed"] = "failed"
    trouble: Trouble
    reason: str
    errno: int | None = None
    """Of the journal's error."""


Message: TypeAlias = Annotated[
    Ready | Facts | Begun | Done | LeftOut | Failed, Field(discriminator="says")
]
MESSAGE: TypeAdapter[Message] = TypeAdapter(Message)
