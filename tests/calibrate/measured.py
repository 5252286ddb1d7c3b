"""Records as a calibration would hold them, made up with round numbers."""

from __future__ import annotations

from pathlib import Path

from calibrate.points import (
    CollectivePoint,
    GemmPoint,
    GroupKind,
    MemoryBoundPoint,
    Point,
    StepPoint,
)
from calibrate.records import Fingerprint, Header, Record, Status
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout
from simulator.workload.job import TrainingJob

HEADER = Header(
    traincast="0.1.0",
    made_by="calibrate run --plan quick",
    at="2026-11-30T12:00:00Z",
    fingerprint=Fingerprint(accelerator="NVIDIA H100 80GB HBM3", world_size=8),
)


def gemm(m: int = 4096, n: int = 4096, k: int = 4096) -> GemmPoint:
    """Return a bf16 product."""
    return GemmPoint(dtype=Dtype.BF16, m=m, n=n, k=k)


def all_reduce(size: float, ranks: int = 8, nodes: int = 1) -> CollectivePoint:
    """Return an all-reduce."""
    return CollectivePoint(
        collective=Collective.ALL_REDUCE, ranks=ranks, nodes=nodes, bytes=float(size)
    )


def pair(first: int, second: int, size: float) -> CollectivePoint:
    """Return a message between two ranks alone."""
    return CollectivePoint(
        collective=Collective.SEND_RECV,
        ranks=2,
        nodes=1,
        bytes=float(size),
        group=GroupKind.PAIR,
        first=first,
        second=second,
    )


def copy(size: float) -> MemoryBoundPoint:
    """Return a memory-bound operator."""
    return MemoryBoundPoint(
        operator="add", memory_class=MemoryClass.POINTWISE, dtype=Dtype.BF16, bytes=float(size)
    )


def step(model: str = "llama3.2-1b", layers: int = 2) -> StepPoint:
    """Return a step of a few layers on one accelerator."""
    job = TrainingJob(global_batch_size=4, seq_length=2048, stack="torchtitan")
    return StepPoint(model=model, layers=layers, job=job, layout=ParallelLayout(dp=1))


def record(point: Point, seconds: float | None = 1e-3, **others: object) -> Record:
    """Return a good record unless told otherwise."""
    return Record.model_validate({"point": point, "seconds": seconds, "spread": 0.02, **others})


def rejected(point: Point, reason: str) -> Record:
    """Return a record that was imported and does not count."""
    return record(point, status=Status.REJECTED, reason=reason, origin="all_reduce.log:12")


def write_folder(folder: Path, *records: Record) -> Path:
    """Write a folder of measurements as `calibrate run` leaves it."""
    lines = [HEADER.model_dump_json(), *(each.model_dump_json() for each in records)]
    folder.mkdir(exist_ok=True)
    (folder / "measured.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder
