"""What a rank did over time, from its profiler trace: device work, or operators of a CPU run.

Every slice has the class of work that it does, in the forecast's words (`Category`) where its
name, its group or the range that launched it tells; what nothing tells stays under its own name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calibrate.import_json import ArrayStream
from calibrate.import_kineto_events import whole
from calibrate.import_kineto_file import trace_text
from calibrate.import_kineto_groups import NAME, described
from calibrate.import_kineto_kernels import COLLECTIVE, class_of
from calibrate.import_kineto_labels import (
    GROUP_KINDS,
    Purposes,
    Told,
    group_label,
    kernel_label,
)
from calibrate.import_kineto_operators import Slice, operator_slices
from calibrate.import_kineto_pick import Mark, Picked, pick
from simulator.errors import InputError, Problem
from simulator.results import Category

MAX_COMPARED_BYTES = 2 * 2**30
"""Of a trace, unpacked: its work is kept at once, in up to twice as many bytes of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTrace:
    """What one rank's trace holds."""

    path: str
    rank: int | None
    world_size: int | None
    slices: tuple[Slice, ...]
    """By start."""
    marks: tuple[Mark, ...]
    on_device: bool
    """Whether slices are work of a device; else operators of the CPU."""
    notes: tuple[str, ...] = ()


def read_rank(path: Path, purposes: Purposes, most: int = MAX_COMPARED_BYTES) -> RankTrace:
    """Return what a rank did; `purposes` says what process groups are for.

    Raises:
        InputError: it cannot be read, is larger than `most` bytes unpacked, holds no work, or is a
            forecast.
    """
    picked = Picked()
    with trace_text(path, most) as text:
        stream = ArrayStream(text, "traceEvents")
        for event in stream:
            pick(picked, event)
    _refuse_forecast(stream.frame, path)
    found = stream.frame.get("distributedInfo")
    said: Mapping[str, Any] = found if isinstance(found, dict) else {}
    world, axes = whole(said.get("world_size")), purposes.axes
    if axes is not None and world not in (None, axes.world_size):
        axes = None
    purposes = replace(purposes, described=described(said), axes=axes)
    slices = _device_slices(picked, purposes) if picked.work else operator_slices(picked.operators)
    if not slices:
        rule = "holds no work of a device and no operator: nothing can be compared with it"
        fix = "torch.profiler with ProfilerActivity.CUDA, export_chrome_trace"
        raise InputError(Problem(where=str(path), rule=rule, fix=fix))
    return RankTrace(
        path=str(path),
        rank=whole(said.get("rank")),
        world_size=world,
        slices=tuple(sorted(slices, key=lambda each: (each.start, -each.stop))),
        marks=tuple(sorted(picked.marks or picked.iterations, key=lambda mark: mark.start)),
        on_device=bool(picked.work),
        notes=(*_notes(picked, stream), *_guesses(picked, purposes)),
    )


def _refuse_forecast(frame: Mapping[str, Any], path: Path) -> None:
    """Raise `InputError` where the keys around the events are those of `traincast simulate`."""
    other = frame.get("otherData")
    if isinstance(other, dict) and "breakdowns" in other:
        rule = "must be a trace of a real run: it is a forecast that traincast simulate wrote"
        fix = "traincast trace compare SIMULATED.json REAL..., the forecast first"
        raise InputError(Problem(where=str(path), rule=rule, fix=fix))


def _guesses(picked: Picked, purposes: Purposes) -> Iterable[str]:
    """Say which groups were told by the layout that the forecast has."""
    found: dict[tuple[str, str, Told], None] = {}
    for work in picked.work:
        if class_of(work.name) == COLLECTIVE:
            args = picked.said_of(work)
            label, told = group_label(args, purposes)
            found.setdefault((str(args.get(NAME, "")), label, told))
    kinds = {category: kind for kind, category in GROUP_KINDS.items()}
    for group, label, told in found:
        if told is Told.RANKS:
            kind = kinds[Category(label)]
            yield f"--group {group}={kind} is taken, by its ranks in the forecast's layout"
        elif told is Told.ONLY:
            kind = kinds[Category(label)]
            which = f"group {group}" if group else "collectives of groups that are not recorded"
            yield f"{which}: {kind} is taken, the only purpose in the forecast"


def _notes(picked: Picked, stream: ArrayStream) -> Iterable[str]:
    if stream.cut:
        yield "is cut off: what stands before is used"
    if stream.broken:
        yield f"left out: {stream.broken:,} events that are not valid JSON"
    if picked.unusable:
        yield f"left out: {picked.unusable:,} events with no usable time or duration"
    if not picked.work:
        yield "holds no work of a device: operators of the CPU are compared"


def _device_slices(picked: Picked, purposes: Purposes) -> list[Slice]:
    """Return the device's work; what an optimizer's range launched is the optimizer's."""
    found = []
    for work in picked.work:
        number = work.correlation
        launched = picked.launches.get(number) if number is not None else None
        when = launched if launched is not None else -1.0
        inside = any(begin <= when < end for begin, end in picked.optimizer)
        found.append(
            Slice(
                name=work.name,
                label=kernel_label(work.name, picked.said_of(work), purposes, in_optimizer=inside),
                start=work.start,
                stop=work.stop,
                track=work.track,
                launched=launched,
                communicates=class_of(work.name) == COLLECTIVE,
            )
        )
    return found
