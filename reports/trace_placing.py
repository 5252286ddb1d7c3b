"""Where the bars of a trace stand: each on a thread, nested or one after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from simulator.cost.timeline import COLLECTIVE
from simulator.results import Span
from simulator.units import US

Event = dict[str, Any]
Thread: TypeAlias = tuple[int, int]
"""Stage and thread."""
THREADS = {"compute": 0, "data": 1, "send": 2}
"""Of each stream of a stage."""
INSIDE_THREAD = 10
"""The first of those for communication inside passes."""
_THREADS_EACH = 1000
_NS_IN_US = 1000
_ROUNDED = 1
"""Nanoseconds by which two bars can overlap that follow each other."""
_INSIDE = 1
"""Depth of what stands inside a pass."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A span on its thread, in whole nanoseconds."""

    span: Span
    thread: int
    depth: int
    start: int
    stop: int

    @property
    def where(self) -> Event:
        """Its process and thread, as events name them."""
        return place_of(process_of(self.span.stage), self.thread)


def placed(spans: Iterable[Span], operators: Iterable[Span]) -> list[Placed]:
    """Return each span on its thread; bars of a thread nest or follow each other.

    Collectives that overlap each other stand on separate threads. Where rounding makes a bar end
    after the next begins, or after the one around it ends, it ends there: viewers drop such bars.
    """
    found = [*_with_threads(spans, operators)]
    found.sort(key=lambda each: (each.start, -each.stop, each.depth))
    done = list(found)
    open_bars: dict[Thread, list[int]] = {}
    for place, each in enumerate(found):
        around = open_bars.setdefault((each.span.stage, each.thread), [])
        while around and done[around[-1]].depth >= each.depth:
            before = around.pop()
            if done[before].stop > each.start:
                done[before] = _ending(done[before], each.start)
        if around:
            done[place] = _inside(each, done[around[-1]])
        around.append(place)
    return done


def _inside(each: Placed, around: Placed) -> Placed:
    """Return a bar that begins and ends inside another.

    It begins a nanosecond after that, so that at its beginning the other is the innermost one: an
    arrow at that time belongs to it.
    """
    found = _ending(each, around.stop) if around.stop < each.stop else each
    if found.start == around.start and found.stop - found.start > _ROUNDED:
        return replace(found, start=found.start + _ROUNDED)
    return found


def _ending(each: Placed, stop: int) -> Placed:
    assert each.stop - stop <= _ROUNDED, f"{each} overlaps another by more than rounding"
    return replace(each, stop=stop)


def _with_threads(spans: Iterable[Span], operators: Iterable[Span]) -> Iterator[Placed]:
    for span in spans:
        yield _placed(span, THREADS[span.stream], 0)
    free: dict[int, list[float]] = {}
    for span in sorted(operators, key=lambda span: (span.start, span.stop)):
        if span.stream != COLLECTIVE:
            yield _placed(span, THREADS["compute"], _INSIDE)
            continue
        ends = free.setdefault(span.stage, [])
        lane = next((i for i, end in enumerate(ends) if end <= span.start), len(ends))
        ends[lane : lane + 1] = [span.stop]
        yield _placed(span, INSIDE_THREAD + lane, _INSIDE)


def _placed(span: Span, thread: int, depth: int) -> Placed:
    return Placed(span, thread, depth, nano(span.start), nano(span.stop))


def process_of(stage: int) -> int:
    """Return the number of a stage's process; Perfetto takes 0 for the system's idle one."""
    return stage + 1


def place_of(process: int, thread: int) -> Event:
    """Return the process and thread of an event; a thread's number is its own in all the file.

    Perfetto takes threads of one number for one thread where they are in processes of their own.
    """
    return {"pid": process, "tid": _THREADS_EACH * process + thread}


def nano(seconds: float) -> int:
    """Return a time in whole nanoseconds."""
    return round(seconds / US * _NS_IN_US)


def micro(nanoseconds: int) -> float:
    """Return the microseconds of a file, exactly as many decimals as nanoseconds have."""
    return nanoseconds / _NS_IN_US
