"""What a rank did over time, from its profiler trace: device work, or operators of a CPU run.

Every slice has the class of work that it does, in the forecast's words (`Category`) where its
name, its group or the range that launched it tells; what nothing tells stays under its own name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from calibrate.import_json import ArrayStream
from calibrate.import_kineto_events import COLLECTIVE_NAME, KERNELS, LAUNCHES, seconds_of, whole
from calibrate.import_kineto_file import trace_text
from calibrate.import_kineto_labels import Groups, kernel_label, operator_label
from simulator.errors import InputError, Problem

MAX_COMPARED_BYTES = 2 * 2**30
"""Of a trace, unpacked: its work is kept at once, in up to twice as many bytes of memory."""
_STEP = "ProfilerStep"
_OPTIMIZER = re.compile(r"^optimizer\.step", re.I)
_ITERATION = re.compile(
    r"^(?:#+\s*)?(?:iteration|iter|train[_ ]?step|step)[\s_#:=]*(\d{1,18})\b", re.I
)
_OPERATORS = frozenset(("cpu_op", "user_annotation", "operator"))
Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One piece of work, [start, stop) seconds of the trace's clock."""

    name: str
    label: str
    """Its class."""
    start: float
    stop: float
    track: str
    """Stream of the device, or thread."""
    launched: float | None = None
    """When the CPU asked for it; None where that was not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A step as the program marked it, on the CPU's clock."""

    number: int
    start: float
    stop: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RankTrace:
    """What one rank's trace holds."""

    path: str
    rank: int | None
    slices: tuple[Slice, ...]
    """By start."""
    marks: tuple[Mark, ...]
    on_device: bool
    """Whether slices are work of a device; else operators of the CPU."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Picked:
    """What was picked; filled while a file is read."""

    work: list[tuple[str, float, float, str, int | None, Mapping[str, Any]]] = field(
        default_factory=list
    )
    operators: list[tuple[str, float, float, str]] = field(default_factory=list)
    launches: dict[int, float] = field(default_factory=dict)
    optimizer: list[Range] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    iterations: list[Mark] = field(default_factory=list)
    unusable: int = 0


def read_rank(path: Path, groups: Groups, most: int = MAX_COMPARED_BYTES) -> RankTrace:
    """Return what a rank did; `groups` says what process groups are for, by name.

    Raises:
        InputError: it cannot be read, is larger than `most` bytes unpacked, or holds no work.
    """
    picked = _Picked()
    with trace_text(path, most) as text:
        stream = ArrayStream(text, "traceEvents")
        for event in stream:
            _pick(picked, event)
    said = stream.frame.get("distributedInfo")
    slices = _device_slices(picked, groups) if picked.work else _operator_slices(picked)
    if not slices:
        rule = "holds no work of a device and no operator: nothing can be compared with it"
        fix = "torch.profiler with ProfilerActivity.CUDA, export_chrome_trace"
        raise InputError(Problem(where=str(path), rule=rule, fix=fix))
    return RankTrace(
        path=str(path),
        rank=whole(said.get("rank")) if isinstance(said, dict) else None,
        slices=tuple(sorted(slices, key=lambda each: (each.start, -each.stop))),
        marks=tuple(sorted(picked.marks or picked.iterations, key=lambda mark: mark.start)),
        on_device=bool(picked.work),
        notes=tuple(_notes(picked, stream)),
    )


def _notes(picked: _Picked, stream: ArrayStream) -> Iterable[str]:
    if stream.cut:
        yield "is cut off: what stands before is used"
    if stream.broken:
        yield f"left out: {stream.broken:,} events that are not valid JSON"
    if picked.unusable:
        yield f"left out: {picked.unusable:,} events with no usable time or duration"
    if not picked.work:
        yield "holds no work of a device: operators of the CPU are compared"


def _pick(picked: _Picked, event: Mapping[str, Any]) -> None:
    name, category = event.get("name"), str(event.get("cat", "")).lower()
    if event.get("ph") != "X" or not isinstance(name, str):
        return
    begin, seconds = seconds_of(event.get("ts")), seconds_of(event.get("dur"))
    if begin is None or seconds is None:
        picked.unusable += 1
        return
    found = event.get("args")
    args: Mapping[str, Any] = found if isinstance(found, dict) else {}
    name, end, number = sys.intern(name), begin + seconds, whole(args.get("correlation"))
    if category in KERNELS:
        picked.operators.clear()
        where = f"{event.get('pid')}: stream {args.get('stream', event.get('tid'))}"
        kept = args if COLLECTIVE_NAME in args or "Process Group Name" in args else {}
        picked.work.append((name, begin, end, sys.intern(where), number, kept))
    elif category in LAUNCHES:
        if number is not None:
            picked.launches[number] = begin
    elif category in _OPERATORS:
        _pick_operator(picked, name, begin, end, f"{event.get('pid')}: {event.get('tid')}")


def _pick_operator(picked: _Picked, name: str, begin: float, end: float, track: str) -> None:
    if name.startswith(_STEP):
        number = whole(name.partition("#")[2])
        place = len(picked.marks) if number is None else number
        picked.marks.append(Mark(number=place, start=begin, stop=end))
        return
    if said := _ITERATION.match(name):
        picked.iterations.append(Mark(number=int(said[1]), start=begin, stop=end))
        return
    if _OPTIMIZER.match(name):
        picked.optimizer.append((begin, end))
    if not picked.work:
        picked.operators.append((name, begin, end, sys.intern(track)))


def _device_slices(picked: _Picked, groups: Groups) -> list[Slice]:
    """Return the device's work; what an optimizer's range launched is the optimizer's."""
    found = []
    for name, start, stop, track, number, args in picked.work:
        launched = picked.launches.get(number) if number is not None else None
        when = launched if launched is not None else -1.0
        inside = any(begin <= when < end for begin, end in picked.optimizer)
        label = kernel_label(name, args, groups, in_optimizer=inside)
        found.append(
            Slice(name=name, label=label, start=start, stop=stop, track=track, launched=launched)
        )
    return found


def _operator_slices(picked: _Picked) -> list[Slice]:
    """Return what each thread of a CPU run did, innermost operators first.

    An operator that says no class has that of the one around it.
    """
    found: list[Slice] = []
    tracks: dict[str, list[tuple[str, float, float, str]]] = {}
    for operator in picked.operators:
        tracks.setdefault(operator[3], []).append(operator)
    for track, operators in tracks.items():
        found += _innermost(track, sorted(operators, key=lambda each: (each[1], -each[2])))
    return found


def _innermost(track: str, operators: list[tuple[str, float, float, str]]) -> list[Slice]:
    found: list[Slice] = []
    stack: list[tuple[str, str, float]] = []
    now = 0.0

    def advance(until: float) -> None:
        nonlocal now
        while stack and now < until:
            name, label, end = stack[-1]
            stop = min(end, until)
            if stop > now:
                found.append(Slice(name=name, label=label, start=now, stop=stop, track=track))
                now = stop
            if end <= until:
                stack.pop()
        now = max(now, until)

    for name, begin, end, _ in operators:
        advance(begin)
        around = stack[-1][1] if stack else None
        stack.append((name, operator_label(name, around), min(end, stack[-1][2]) if stack else end))
    advance(max((end for _, _, end in stack), default=now))
    return found
