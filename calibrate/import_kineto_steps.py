"""Steps of a rank's trace, and where the time of each goes: every instant is counted once.

At each instant the first of these that runs counts: products, attention, other kernels, the
optimizer, unclassified work, communication, copies to and from the host. So communication is only
what nothing hides. An instant in which nothing runs is `launch` where the CPU asked for the next
work only after the last had ended, else `idle`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from calibrate.import_kineto_busy import CollectiveUse, busy_seconds, collective_uses
from calibrate.import_kineto_labels import OTHER
from calibrate.import_kineto_operators import Slice
from calibrate.import_kineto_pick import Mark
from calibrate.import_kineto_slices import RankTrace
from simulator.errors import InputError, Problem
from simulator.results import Category

IDLE = "idle"
"""The device waits and the trace does not say for what."""
_ORDER = (
    Category.GEMM,
    Category.ATTENTION,
    Category.MEMORY_BOUND,
    Category.OPTIMIZER,
    OTHER,
    Category.TENSOR_COMM,
    Category.CONTEXT_COMM,
    Category.EXPERT_COMM,
    Category.PIPELINE_COMM,
    Category.DATA_COMM,
)
_RANK = {str(label): place for place, label in enumerate(_ORDER)}
_LAST = {Category.HOST_COMM.value: len(_ORDER) + 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Times in which nothing runs."""

    count: int
    longest: float
    """Seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """One step of one rank; the classes add up to its time."""

    path: str
    rank: int | None
    number: int
    start: float
    stop: float
    seconds: Mapping[str, float]
    """By class, seconds in which it counts."""
    unclassified: Mapping[str, float]
    """Part of class `other`, by the name of the work."""
    slices: tuple[Slice, ...]
    """Work inside the step, cut at its ends."""
    busy: Mapping[str, float]
    """By class, seconds in which any of its work runs, hidden or not."""
    collectives: tuple[CollectiveUse, ...]
    pauses: Mapping[str, Pauses]
    """By class: `launch` and `idle`."""

    @property
    def time(self) -> float:
        """The step time, seconds."""
        return self.stop - self.start


def measured_steps(trace: RankTrace) -> tuple[tuple[MeasuredStep, ...], str]:
    """Return the steps of a trace that hold work, and how they were found.

    Raises:
        InputError: the trace does not show where a step begins and ends.
    """
    windows = list(_marked(trace))
    how = "marked steps"
    if not windows:
        windows, how = list(_between_optimizers(trace.slices)), "from optimizer to optimizer"
    if not windows:
        rule = "shows no whole step: it marks none, and holds no two optimizer steps to cut it at"
        fix = "call profiler.step() after every training step"
        raise InputError(Problem(where=trace.path, rule=rule, fix=fix))
    return tuple(_step(trace, window) for window in windows), how


def _marked(trace: RankTrace) -> Iterator[Mark]:
    """Yield when the device was in each marked step.

    A step begins with the first work that was launched in it and ends where the next begins; the
    last before a pause ends with its mark or its last work, whatever is later.
    """
    if not trace.on_device:
        yield from (mark for mark in trace.marks if mark.stop > mark.start)
        return
    starts = [mark.start for mark in trace.marks]
    work: dict[int, list[Slice]] = {}
    for each in trace.slices:
        when = each.start if each.launched is None else each.launched
        place = bisect_right(starts, when) - 1
        if place >= 0 and when < trace.marks[place].stop:
            work.setdefault(place, []).append(each)
    for place, mark in enumerate(trace.marks):
        if place not in work:
            continue
        start = min(each.start for each in work[place])
        last = max(each.stop for each in work[place])
        after = trace.marks[place + 1] if place + 1 < len(trace.marks) else None
        stop = max(mark.stop, last)
        if after is not None and after.number == mark.number + 1 and place + 1 in work:
            stop = min(each.start for each in work[place + 1])
        if stop > start:
            yield replace(mark, start=start, stop=stop)


def _between_optimizers(slices: Iterable[Slice]) -> Iterator[Mark]:
    """Yield the time from the end of each optimizer step to the end of the next."""
    ends: list[float] = []
    open_burst = False
    for each in slices:
        if each.label == Category.OPTIMIZER:
            if open_burst:
                ends[-1] = max(ends[-1], each.stop)
            else:
                ends.append(each.stop)
            open_burst = True
        elif each.label in (Category.GEMM, Category.ATTENTION):
            open_burst = False
    for number, (start, stop) in enumerate(pairwise(ends)):
        yield Mark(number=number, start=start, stop=stop)


def _step(trace: RankTrace, window: Mark) -> MeasuredStep:
    inside = tuple(
        replace(each, start=max(each.start, window.start), stop=min(each.stop, window.stop))
        for each in trace.slices
        if each.start < window.stop and each.stop > window.start
    )
    totals: defaultdict[str, float] = defaultdict(float)
    by_name: defaultdict[tuple[str, str], float] = defaultdict(float)
    pauses: defaultdict[str, list[float]] = defaultdict(list)
    for label, name, seconds in _instants(inside, window, on_device=trace.on_device):
        totals[label] += seconds
        if name:
            by_name[label, name] += seconds
        else:
            pauses[label].append(seconds)
    unclassified = {name: value for (label, name), value in by_name.items() if label == OTHER}
    return MeasuredStep(
        path=trace.path,
        rank=trace.rank,
        number=window.number,
        start=window.start,
        stop=window.stop,
        seconds=dict(totals),
        unclassified=dict(sorted(unclassified.items(), key=lambda each: -each[1])),
        slices=inside,
        busy=busy_seconds(inside),
        collectives=collective_uses(inside, by_name),
        pauses={
            label: Pauses(count=len(each), longest=max(each)) for label, each in pauses.items()
        },
    )


def _instants(
    slices: Sequence[Slice], window: Mark, *, on_device: bool
) -> Iterator[tuple[str, str, float]]:
    """Yield class, name and length of each interval between two changes of a step."""
    changes = sorted(
        [(each.start, 1, number) for number, each in enumerate(slices)]
        + [(each.stop, -1, number) for number, each in enumerate(slices)]
    )
    running: dict[int, tuple[int, str, str]] = {}
    now = window.start
    for time, sign, number in changes:
        if time > now:
            if running:
                _, label, name = min(running.values())
                yield label, name, time - now
            else:
                yield _pause(slices[number], now, on_device=on_device), "", time - now
            now = time
        each = slices[number]
        if sign > 0 and each.stop > each.start:
            running[number] = (_place(each.label), each.label, each.name)
        elif sign < 0:
            running.pop(number, None)
    if window.stop > now:
        yield IDLE, "", window.stop - now


def _pause(after: Slice, since: float, *, on_device: bool) -> str:
    """Return why nothing ran before some work: it was asked for only after all else had ended."""
    late = on_device and after.launched is not None and after.launched >= since
    return Category.LAUNCH.value if late else IDLE


def _place(label: str) -> int:
    return _RANK.get(label, _LAST.get(label, len(_ORDER)))
