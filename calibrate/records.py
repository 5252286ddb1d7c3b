"""The lines of a calibration file: a header that names the machine, then one record a point.

A file is JSON lines. Everything that `calibrate run` measures or `calibrate import` reads becomes
such records; `fit`, `check` and `report` read nothing else. Times are seconds, sizes bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from calibrate.points import Point
from simulator.files import FileRecord

FORMAT = 1
"""Of the lines; a reader refuses a later one."""
LEAST_SECONDS, MOST_SECONDS = 1e-12, 1e9
"""Of a measured time: no clock resolves less, and no one waits longer (thirty years)."""


class Status(StrEnum):
    """What became of a point."""

    OK = "ok"
    NOISY = "noisy"
    """Repeated once and still too scattered: reported, not fitted."""
    TIMEOUT = "timeout"
    """Ended by the supervisor's clock."""
    OUT_OF_MEMORY = "oom"
    """It, or a smaller point of its family, ran out of memory."""
    FAILED = "failed"
    """A rank died or raised; `reason` has its last words."""
    REJECTED = "rejected"
    """Imported, but impossible or contradictory; `reason` says why."""


class Fingerprint(FileRecord):
    """The machine and the software that were measured; None is not known (an imported log)."""

    accelerator: str | None = None
    """As the driver or the operating system names it."""
    accelerator_memory: float | None = None
    """Bytes of one, as the framework reports it."""
    accelerators_per_node: int | None = None
    nodes: int | None = None
    world_size: int | None = None
    backend: str | None = None
    """Of torch.distributed: "nccl", "gloo", ...; None where nothing was communicated."""
    driver: str | None = None
    torch: str | None = None
    library: str | None = None
    """Version of the communication library."""
    cpu: str | None = None
    kernel: str | None = None
    """Operating system and its version."""
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables that change what is measured: NCCL_*, GLOO_*, CUDA_*, OMP_*, TORCH_*."""
    topology: str | None = None
    """What `nvidia-smi topo -m` prints, or the like."""


class Header(FileRecord):
    """The first line of a file, and one more each time that a run goes on."""

    line: Literal["header"] = "header"
    format: int = Field(default=FORMAT, ge=1)
    traincast: str
    """Version of traincast."""
    made_by: str
    """"calibrate run --plan quick", "calibrate import all_reduce.log"."""
    at: str
    """UTC time, ISO 8601."""
    fingerprint: Fingerprint


class Clocks(FileRecord):
    """What the device's management library said while a point ran; None is not known."""

    sm_clock: float | None = None
    """Hz, median."""
    power: float | None = None
    """Watts, mean."""
    temperature: float | None = None
    """Degrees Celsius, highest."""
    throttle: tuple[str, ...] = ()
    """Reasons that were set at any time, as NVML names them."""
    ecc_errors: int | None = None
    """Uncorrected, since the driver was loaded."""


class Record(FileRecord):
    """One point and what was measured."""

    line: Literal["record"] = "record"
    point: Point
    status: Status = Status.OK
    seconds: float | None = Field(default=None, ge=LEAST_SECONDS, le=MOST_SECONDS)
    """Median over blocks of the time of one run, the slowest rank's; None where none was got."""
    spread: float | None = Field(default=None, ge=0)
    """Distance between the quartiles of the blocks over the median."""
    samples: int = Field(default=0, ge=0)
    """Blocks that `seconds` is the median of."""
    outliers: int = Field(default=0, ge=0)
    """Blocks that were dropped, more than 5 median absolute deviations off."""
    attempt: int = Field(default=1, ge=1)
    by_rank: tuple[Annotated[float, Field(ge=0)], ...] = ()
    """Median of each rank, where every rank was timed for itself; 0 for one that took no part."""
    values: dict[str, float] = Field(default_factory=dict)
    """What a kind of point yields besides: see `VALUES`."""
    algorithm: str | None = None
    """Of a collective, where the library says so."""
    protocol: str | None = None
    clocks: Clocks | None = None
    reason: str = ""
    """Why the status is not ok: the last words of a rank, the rule that was broken."""
    origin: str = ""
    """Of an imported record: file and line."""


VALUES = {
    **dict.fromkeys(("gemm", "attention", "memory_bound", "host_copy"), ("graph",)),
    "interference": (
        "compute_alone",
        "compute_beside",
        "communication_alone",
        "communication_beside",
    ),
    "step": ("peak_allocated", "peak_reserved", "parameters", "tokens"),
    "soak": ("flops", "first_seconds", "last_seconds"),
}
"""Names in `Record.values` by kind of point; seconds, bytes, FLOP/s or counts. `graph` is 1 where
runs came from a captured graph, and 0 where the CPU launched each."""

Line: TypeAlias = Annotated[Header | Record, Field(discriminator="line")]
