"""The events of a profiler's trace that timings are read from, picked while the file is read."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrate.import_json import ArrayStream, Text
from simulator.units import US

KERNELS = frozenset(("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"))
LAUNCHES = frozenset(("cuda_runtime", "cuda_driver", "hip_runtime", "runtime", "xpu_runtime"))
_PRODUCTS = frozenset(("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear"))
_STEP = "ProfilerStep"
_GPU_SIDE = "gpu_"
COLLECTIVE_NAME = "Collective name"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What a device ran, once."""

    name: str
    begin: float
    """Seconds."""
    seconds: float
    external: int | None
    """Of the operator that launched it."""
    correlation: int | None
    """Of the call that launched it."""
    args: Mapping[str, Any]
    """What it says of its collective."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step that the profiler was told of."""

    number: int
    begin: float
    seconds: float


@dataclass(slots=True, kw_only=True)
class Trace:
    """What was picked; filled while a file is read."""

    kernels: list[Kernel] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    operators: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    """Arguments of operators worth a point, by external id."""
    products: dict[int, str] = field(default_factory=dict)
    """Names of those that are matrix products."""
    launches: dict[int, tuple[float, int | None]] = field(default_factory=dict)
    """When a call launched, and for which operator, by correlation."""
    frame: Mapping[str, Any] = field(default_factory=dict)
    events: int = 0
    broken: int = 0
    cut: bool = False

    @property
    def distributed(self) -> Mapping[str, Any]:
        """What the trace says of its process group."""
        found = self.frame.get("distributedInfo")
        return found if isinstance(found, dict) else {}

    @property
    def devices(self) -> list[Mapping[str, Any]]:
        """The devices that the process could see."""
        found = self.frame.get("deviceProperties")
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def read_trace(text: Text) -> Trace:
    """Return the events of a Kineto or Chrome trace that matter."""
    stream = ArrayStream(text, "traceEvents")
    trace = Trace()
    for event in stream:
        trace.events += 1
        _pick(trace, event)
    trace.frame, trace.broken, trace.cut = stream.frame, stream.broken, stream.cut
    return trace


def whole(value: object) -> int | None:
    """Return a count or an id as traces write it: a number, or a number in quotes."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _LONGEST_ID:
        return int(value)
    plain = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if isinstance(value, int) and plain else None


_LONGEST_ID = 20
_NO_ID = (None, 0)


def _pick(trace: Trace, event: Mapping[str, Any]) -> None:
    name, category = event.get("name"), str(event.get("cat", "")).lower()
    begin, seconds = seconds_of(event.get("ts")), seconds_of(event.get("dur"))
    if event.get("ph") != "X" or not isinstance(name, str) or begin is None or seconds is None:
        return
    found = event.get("args")
    args: Mapping[str, Any] = found if isinstance(found, dict) else {}
    external = external_id(args)
    correlation = whole(args.get("correlation"))
    if category in KERNELS:
        trace.kernels.append(
            Kernel(
                name=sys.intern(name),
                begin=begin,
                seconds=seconds,
                external=external,
                correlation=correlation,
                args=args if COLLECTIVE_NAME in args else {},
            )
        )
    elif category in LAUNCHES and correlation is not None:
        trace.launches[correlation] = (begin, external)
    elif name.startswith(_STEP) and not category.startswith(_GPU_SIDE):
        number = whole(name.partition("#")[2])
        place = len(trace.steps) if number is None else number
        trace.steps.append(Step(number=place, begin=begin, seconds=seconds))
    elif external is not None:
        _keep_operator(trace, name, external, args)


def _keep_operator(trace: Trace, name: str, external: int, args: Mapping[str, Any]) -> None:
    """Keep an operator that shapes or sizes can be read from."""
    if name in _PRODUCTS or COLLECTIVE_NAME in args:
        trace.operators[external] = args
    if name in _PRODUCTS:
        trace.products[external] = sys.intern(name)


def external_id(args: Mapping[str, Any]) -> int | None:
    """Return the id that ties operators and kernels together; 0 is none."""
    ids = (whole(args.get(key)) for key in ("External id", "external id"))
    return next((each for each in ids if each not in _NO_ID), None)


def seconds_of(value: object) -> float | None:
    """Return microseconds of a trace in seconds."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        seconds = float(value) * US
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
