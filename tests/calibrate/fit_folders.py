"""Folders of measurements as a machine with known constants would leave them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from calibrate.points import (
    AttentionPoint,
    CollectivePoint,
    Direction,
    GemmPoint,
    HostCopyPoint,
    InterferencePoint,
    Launch,
    LaunchPoint,
    MemoryBoundPoint,
    Point,
)
from calibrate.predict import predict
from calibrate.records import Fingerprint, Header, Line, Record
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout, MemoryClass
from simulator.hardware.profile import Profile, load_profile
from simulator.hardware.software_constants import KernelClass
from simulator.parallel.groups import Collective
from simulator.units import GIB, US

MACHINE = Fingerprint(
    accelerator="NVIDIA H100 80GB HBM3",
    accelerator_memory=85.0e9,
    accelerators_per_node=8,
    backend="nccl",
    torch="2.9.0",
    library="2.27.5",
    driver="575.57",
    cpu="a CPU",
)


def true_machine() -> Profile:
    """Return an H100 node whose kernels and links are slower than the shipped profile says."""
    base = load_profile("dgx-h100")
    constants = base.constants
    slower = constants.gemm[Dtype.BF16].model_copy(
        update={"efficiency": 0.6, "start": 4 * US, "sustained_factor": 1.2}
    )
    efficiency = {**constants.memory_bound.efficiency, MemoryClass.NORM: 0.5}
    changed = {
        "gemm": {**constants.gemm, Dtype.BF16: slower},
        "attention": constants.attention.model_copy(
            update={"efficiency": 0.5, "backward_factor": 3.4}
        ),
        "memory_bound": constants.memory_bound.model_copy(update={"efficiency": efficiency}),
        "collectives": constants.collectives.model_copy(
            update={
                "residual": (),
                "all_gather": constants.collectives.all_gather.model_copy(
                    update={"efficiency": 0.6, "start": 9 * US}
                ),
            }
        ),
    }
    return base.model_copy(update={"constants": constants.model_copy(update=changed)})


def kernel_points() -> list[Point]:
    """Return what a short plan measures on one device."""
    products = [
        GemmPoint(dtype=Dtype.BF16, m=m, n=n, k=k, layout=layout, sustained=sustained)
        for m in (1024, 4096)
        for n, k in ((11008, 4096), (512, 8192))
        for layout in (GemmLayout.FORWARD, GemmLayout.WEIGHT_GRADIENT)
        for sustained in (False, True)
    ]
    attention = [
        AttentionPoint(
            dtype=Dtype.BF16,
            batch=1,
            seq=seq,
            heads=heads,
            kv_heads=8,
            head_dim=128,
            backward=backward,
        )
        for seq in (1024, 8192)
        for heads in (8, 32)
        for backward in (False, True)
    ]
    memory = [
        MemoryBoundPoint(operator=name, memory_class=kind, dtype=Dtype.BF16, bytes=size)
        for name, kind in (("add", MemoryClass.POINTWISE), ("layer_norm", MemoryClass.NORM))
        for size in (1e6, 1e7, 1e8, 1e9)
    ]
    copies = [
        HostCopyPoint(direction=Direction.TO_HOST, bytes=size) for size in (1e5, 1e6, 1e8, 1e9)
    ]
    return [*products, *attention, *memory, *copies]


def collective_points() -> list[Point]:
    """Return sixty points of one node."""
    return [
        CollectivePoint(collective=collective, ranks=ranks, nodes=1, bytes=1024.0 * 4**power)
        for collective in (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.ALL_TO_ALL)
        for ranks in (2, 8)
        for power in range(10)
    ]


def measured(points: Iterable[Point], machine: Profile, *, noise: float = 0.0) -> list[Record]:
    """Return what a machine would measure, with a random relative error."""
    random = np.random.default_rng(7)
    return [
        Record(
            point=point,
            seconds=predict(Record(point=point), machine).seconds
            * float(np.exp(noise * random.standard_normal())),
            samples=5,
        )
        for point in points
    ]


def software_records() -> list[Record]:
    """Return launches and interference, which no constant of hardware explains."""
    beside = InterferencePoint(
        kernel=KernelClass.GEMM, collective=Collective.ALL_REDUCE, ranks=8, bytes=GIB
    )
    values = {
        "compute_alone": 1.0,
        "compute_beside": 1.25,
        "communication_alone": 2.0,
        "communication_beside": 3.0,
    }
    return [
        Record(point=LaunchPoint(launch=Launch.KERNEL), seconds=6 * US),
        Record(point=beside, seconds=1.25, values=values),
    ]


def write_folder(
    folder: Path,
    records: Sequence[Record],
    *,
    machine: Fingerprint = MACHINE,
    name: str = "measured",
    made_by: str = "calibrate run --plan quick",
) -> Path:
    """Write a file of measurements and return its folder."""
    header = Header(
        traincast="0.1.0", made_by=made_by, at="2026-11-30T12:00:00+00:00", fingerprint=machine
    )
    lines: list[Line] = [header, *records]
    text = "".join(line.model_dump_json() + "\n" for line in lines)
    (folder / f"{name}.jsonl").write_text(text)
    return folder
