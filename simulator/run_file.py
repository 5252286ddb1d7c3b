"""The `[run]` table of a scenario: a whole run around the step, from checkpoints to failures."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, model_validator

from simulator.files import FileRecord
from simulator.units import Bandwidth, Seconds


class CheckpointMode(StrEnum):
    """What training waits for while a checkpoint is written."""

    SYNC = "sync"
    """Until it is in storage."""
    ASYNC = "async"
    """Until it is in host memory; it is written to storage beside the next steps."""


class CheckpointFile(FileRecord):
    """When checkpoints are written, how, and where to."""

    interval: Seconds | None = Field(default=None, gt=0)
    """Training between two checkpoints, rounded up to whole steps; left out, with failures, the
    best one is searched."""
    interval_steps: int | None = Field(default=None, ge=1)
    """The same in steps."""
    mode: CheckpointMode = CheckpointMode.SYNC
    sharded: bool = True
    """Whether the ranks of all replicas write a part each (Megatron-LM's
    `--ckpt-fully-parallel-save`, PyTorch DCP); else only those of one replica write."""
    overhead: Seconds | None = None
    """Training waits for each checkpoint besides copies and writes: to collect, pin, agree. Left
    out, as in the failure rates; 0 without any."""
    keep: int | None = Field(default=None, ge=1)
    """Checkpoints that are kept, the oldest deleted first; left out, all."""
    write_bandwidth: Bandwidth | None = None
    """Of the storage, all nodes together, bytes/s; left out, only the node's own limits."""
    read_bandwidth: Bandwidth | None = None
    """The same for reading; left out, as for writing."""

    @model_validator(mode="after")
    def _one_interval(self) -> CheckpointFile:
        if self.interval is not None and self.interval_steps is not None:
            raise ValueError("interval and interval_steps say the same; give one of them")
        return self


class FailureFile(FileRecord):
    """What fails, and what happens then."""

    rates: tuple[str, ...] = Field(min_length=1)
    """Shipped failure rates, or .toml files; of several, each simulated run has those of one."""
    detection: Seconds | None = None
    """From a failure until the job is stopped; left out, as in the rates."""
    restart: Seconds | None = None
    """From nodes to the first step without reading the checkpoint: scheduling, start of processes,
    communicators, warm-up and compilation; left out, as in the rates."""
    repair: Seconds | None = None
    """Mean time until a lost node is back; left out, as in the rates."""
    spares: int = Field(default=0, ge=0, le=10**5)
    """Nodes beside those of the cluster table that take the place of lost ones; they are paid."""
    elastic: bool = False
    """Whether the run goes on with fewer data-parallel replicas while no node is left, where the
    batch divides."""


class MaintenanceFile(FileRecord):
    """Planned stops: the job saves a checkpoint, waits, and starts again."""

    every: Seconds = Field(gt=0)
    lasts: Seconds
    checkpoint_first: bool = True
    """Whether a checkpoint is begun when a stop is due, and the job stops once it is in storage, as
    with Megatron-LM's `--exit-signal-handler` under Slurm's `--signal`; false: the job runs on to
    the next regular one."""


class EnergyFile(FileRecord):
    """From watts at the accelerators to a bill."""

    pue: float | None = Field(default=None, ge=1, le=10)
    """Energy of the site over energy of its machines; left out, only the machines are counted."""
    grid_intensity: float | None = Field(default=None, ge=0, le=10_000)
    """Grams of CO2-equivalent a kWh; left out, no emissions are given."""
    power_model: str = "training"
    """A shipped power model, or a .toml file."""


class DataFile(FileRecord):
    """How the data set is read."""

    bytes_per_token: float | None = Field(default=None, gt=0, le=10**6)
    """In storage; left out, as Megatron-LM's indexed data sets: 2 where the vocabulary is below
    65,500 and else 4."""
    read_bandwidth: Bandwidth | None = None
    """Of the storage that holds it, all nodes together, bytes/s; left out, it is not checked."""
    workers_per_node: int | None = Field(default=None, ge=1, le=10**4)
    """Loader processes of a node."""
    tokens_per_worker: float | None = Field(default=None, gt=0)
    """Tokens a second that one loader process prepares, tokenizing if it does."""


class RunFile(FileRecord):
    """The whole run: how much is trained, at what price, and what comes between."""

    steps: int | None = Field(default=None, ge=1, le=10**9)
    """Left out, as many as `job.tokens` need."""
    price: float | None = Field(default=None, ge=0)
    """An accelerator-hour, in `currency`; left out, that of the profile."""
    currency: str | None = None
    """Left out, that of the profile."""
    seed: int = Field(default=0, ge=0)
    """The same seed gives the same answer."""
    replications: int = Field(default=200, ge=20, le=10_000)
    """Whole runs that are simulated."""
    checkpoint: CheckpointFile = CheckpointFile()
    failures: FailureFile | None = None
    """Left out, nothing fails."""
    maintenance: MaintenanceFile | None = None
    energy: EnergyFile = EnergyFile()
    data: DataFile = DataFile()
