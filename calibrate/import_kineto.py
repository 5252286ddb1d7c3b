"""Traces of torch.profiler (Kineto, Chrome format), plain or packed, CUDA and ROCm.

Kernel times are those of a training run: a collective's kernel also waits for the slowest rank
and shares the device with other kernels. The fastest call of a point is the nearest to its time
alone, and is what its record has.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from calibrate.import_kineto_events import Kernel, Step, Trace, read_trace, whole
from calibrate.import_kineto_file import trace_text
from calibrate.import_kineto_kernels import COLLECTIVE, class_of
from calibrate.import_kineto_points import collectives, per_node, products
from calibrate.import_options import Imported, ImportOptions
from calibrate.import_records import Measured, fastest, header, records_of
from calibrate.points import KernelSumPoint
from calibrate.records import Fingerprint, Status
from simulator.errors import Problem

_STEP = "step"
_IDLE = "launched no kernel: the profiler was stopped in it, or it only waited"


def import_trace(path: Path, options: ImportOptions) -> Imported:
    """Return a trace as calibration lines: kernels, collectives, sums a step, step times.

    Raises:
        InputError: it cannot be read, or is larger than `MAX_TRACE_BYTES` unpacked.
    """
    trace = _read(path)
    notes = list(_notes(trace))
    skipped: Counter[str] = Counter()
    records = (
        *records_of(products(trace, skipped), path.name),
        *fastest(collectives(trace, options, skipped), path.name),
        *records_of(_sums(trace), path.name),
    )
    notes += [f"left out: {count} {what}" for what, count in sorted(skipped.items())]
    if any(record.point.what == COLLECTIVE for record in records):
        notes.append("collectives are the fastest of their calls: others waited for other ranks")
    return Imported(
        kind="profiler trace",
        lines=(header(_fingerprint(trace, options), path.name), *records),
        notes=tuple(Problem(where=str(path), rule=note) for note in notes),
    )


def _read(path: Path) -> Trace:
    with trace_text(path) as text:
        return read_trace(text)


def _sums(trace: Trace) -> Iterator[Measured]:
    """Yield the time of each class of kernels in each step, and of the step itself."""
    rank = whole(trace.distributed.get("rank"))
    steps = sorted(trace.steps, key=lambda step: step.begin)
    totals: defaultdict[tuple[int, str], float] = defaultdict(float)
    for kernel in trace.kernels:
        step = _step_of(trace, kernel, steps)
        if step is not None:
            totals[step, class_of(kernel.name)] += kernel.seconds
    for (number, kind), seconds in sorted(totals.items()):
        if seconds > 0:
            point = KernelSumPoint(kernel=kind, step=number, rank=rank)
            yield Measured(point=point, seconds=seconds, line=0)
    busy = {number for number, _ in totals}
    for each in steps:
        if each.seconds > 0:
            idle = bool(busy) and each.number not in busy
            yield Measured(
                point=KernelSumPoint(kernel=_STEP, step=each.number, rank=rank),
                seconds=each.seconds,
                line=0,
                status=Status.REJECTED if idle else Status.OK,
                reason=_IDLE if idle else "",
            )


def _step_of(trace: Trace, kernel: Kernel, steps: list[Step]) -> int | None:
    """Return the step that launched a kernel; all is step 0 where no steps are marked."""
    if not steps:
        return 0
    launch = trace.launches.get(kernel.correlation) if kernel.correlation is not None else None
    when = launch[0] if launch else kernel.begin
    inside = (each.number for each in steps if each.begin <= when < each.begin + each.seconds)
    return next(inside, None)


def _fingerprint(trace: Trace, options: ImportOptions) -> Fingerprint:
    devices, said = trace.devices, trace.distributed
    names = sorted({str(device.get("name", "")) for device in devices} - {""})
    memory = whole(devices[0].get("totalGlobalMem")) if devices else None
    world, each = whole(said.get("world_size")), per_node(trace, options)
    version = said.get("nccl_version")
    return Fingerprint(
        accelerator=options.accelerator or " + ".join(names) or None,
        accelerator_memory=float(memory) if memory else None,
        accelerators_per_node=each,
        nodes=-(-world // each) if world and each else None,
        world_size=world,
        backend=str(said["backend"]) if "backend" in said else None,
        torch=str(trace.frame["torch_version"]) if "torch_version" in trace.frame else None,
        library=str(version) if version else None,
    )


def _notes(trace: Trace) -> Iterator[str]:
    if trace.cut:
        yield f"the trace is cut off: the {trace.events} events before are kept"
    if trace.broken:
        yield f"left out: {trace.broken} events that are not valid JSON"
    if not trace.kernels:
        yield "holds no kernel of a device: only the machine and marked steps are known from it"
    if not trace.steps:
        yield "marks no steps (profiler.step()): all kernels are summed as step 0"
    if whole(trace.distributed.get("rank")) is None:
        yield "does not say its rank (distributedInfo)"
