"""The events of a profiler's trace that show what ran when, picked while the file is read."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from calibrate.import_kineto_events import (
    COLLECTIVE_NAME,
    KERNELS,
    LAUNCHES,
    external_id,
    seconds_of,
    whole,
)
from calibrate.import_kineto_groups import NAME

_STEP = "ProfilerStep"
_OPTIMIZER = re.compile(r"^optimizer\.step", re.I)
_ITERATION = re.compile(
    r"^(?:#+\s*)?(?:iteration|iter|train[_ ]?step|step)[\s_#:=]*(\d{1,18})\b", re.I
)
_OPERATORS = frozenset(("cpu_op", "user_annotation", "operator"))
Range: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A step as the program marked it, on the CPU's clock."""

    number: int
    start: float
    stop: float


class Work(NamedTuple):
    """What a device ran, [start, stop) seconds of the trace's clock."""

    name: str
    start: float
    stop: float
    track: str
    correlation: int | None
    """Of the call that launched it."""
    external: int | None
    """Of the operator that launched it."""
    args: Mapping[str, Any]
    """What it says of its collective."""


class Operator(NamedTuple):
    """What a thread ran, [start, stop) seconds of the trace's clock."""

    name: str
    start: float
    stop: float
    track: str


@dataclass(slots=True, kw_only=True)
class Picked:
    """What was picked; filled while a file is read."""

    work: list[Work] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    launches: dict[int, float] = field(default_factory=dict)
    collectives: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """What operators say of the collectives that they launch, by external id."""
    optimizer: list[Range] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    iterations: list[Mark] = field(default_factory=list)
    unusable: int = 0

    def said_of(self, work: Work) -> Mapping[str, Any]:
        """Return what is said of a collective: by its kernel, or by what launched that."""
        if work.args or work.external is None:
            return work.args
        return self.collectives.get(work.external, work.args)


def pick(picked: Picked, event: Mapping[str, Any]) -> None:
    """Keep what an event of a trace says."""
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
        stream = str(args.get("stream", event.get("tid"))).removeprefix("stream ")
        where = f"{event.get('pid')}: stream {stream}"
        kept = args if COLLECTIVE_NAME in args or NAME in args else {}
        external = external_id(args)
        picked.work.append(Work(name, begin, end, sys.intern(where), number, external, kept))
    elif category in LAUNCHES:
        if number is not None:
            picked.launches[number] = begin
    elif category in _OPERATORS:
        external = external_id(args)
        if external is not None and NAME in args:
            picked.collectives[external] = args
        _pick_operator(picked, name, begin, end, f"{event.get('pid')}: {event.get('tid')}")


def _pick_operator(picked: Picked, name: str, begin: float, end: float, track: str) -> None:
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
        picked.operators.append(Operator(name, begin, end, sys.intern(track)))
