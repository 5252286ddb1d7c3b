"""What each thread of a run without a device did: its operators, the innermost that runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from calibrate.import_kineto_labels import operator_label
from calibrate.import_kineto_pick import Operator


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
    communicates: bool = False
    """Whether its name is a collective's."""


def operator_slices(operators: Iterable[Operator]) -> list[Slice]:
    """Return what each thread of a CPU run did, innermost operators first.

    An operator that says no class has that of the one around it.
    """
    found: list[Slice] = []
    tracks: dict[str, list[Operator]] = {}
    for operator in operators:
        tracks.setdefault(operator.track, []).append(operator)
    for track, own in tracks.items():
        found += _innermost(track, sorted(own, key=lambda each: (each.start, -each.stop)))
    return found


def _innermost(track: str, operators: list[Operator]) -> list[Slice]:
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
