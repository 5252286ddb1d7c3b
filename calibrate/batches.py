"""What a plan becomes on one machine: batches of points, each run by one set of processes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from calibrate.points import Point
from calibrate.records import Fingerprint
from simulator.files import FileRecord
from simulator.hardware.accelerator import Dtype


class World(FileRecord):
    """The processes that measure together, one an accelerator."""

    size: int = Field(default=1, ge=1)
    local_size: int = Field(default=1, ge=1)
    """Processes on each node."""

    @property
    def nodes(self) -> int:
        """Nodes; every one has as many processes."""
        return self.size // self.local_size


class DeviceFacts(FileRecord):
    """What a first, short process finds out before anything is planned."""

    device: Literal["cpu", "cuda"]
    """As torch names it; RCCL's devices are "cuda" too."""
    devices: int = Field(ge=1)
    """On this node."""
    memory: float = Field(gt=0)
    """Free bytes of one."""
    dtypes: tuple[Dtype, ...]
    """Number formats that its matrix products take."""
    flops: float = Field(gt=0)
    """Of a quick fp32 product (bf16 on an accelerator), FLOP/s: what sizes are chosen by."""
    bandwidth: float | None = Field(default=None, gt=0)
    """Of a quick copy on the device, bytes/s read and written; None where it was not tried."""
    fingerprint: Fingerprint


class Batch(FileRecord):
    """Points that one set of processes measures one after another."""

    name: str
    """Short, of letters, digits and dashes: log files are named by it."""
    ranks: Literal["one", "all"]
    """Only rank 0, or every rank with a process group."""
    points: tuple[Point, ...] = Field(min_length=1)
    """In the order in which they are worth most."""
    seconds: float = Field(gt=0)
    """Expected, for the progress bar and the budget."""
    nccl_choice: bool = False
    """Whether NCCL writes down which algorithm and protocol it takes."""
    each: tuple[float, ...] = ()
    """Expected seconds of each point; empty where not known, which is equal shares."""
