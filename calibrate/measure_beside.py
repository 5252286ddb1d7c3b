"""Two kinds of work at the same time on one device: one is timed while the other never stops.

On an accelerator each has a stream; on the CPU the other work runs in a thread, as PyTorch's
operators and collectives let go of the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from threading import Thread
from time import perf_counter

from calibrate.limits import Limits
from calibrate.measure_device import Device, Work
from calibrate.measure_loop import measure_runs
from calibrate.measuring import Outcome, Ranks
from simulator.units import MS

COVERS = (3, 10, 30)
"""How many times as long as the timed work takes alone the other one is kept up, tried in order:
the factor by which the timed work may slow down before it outlasts the other."""
_MOST_UNCOVERED = 0.1
"""Share of the blocks in which the other work may have ended first; medians do not see them."""


class UncoveredError(Exception):
    """The other work always ended first, so that the time says nothing of both together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two kinds of work, and its seconds alone, the same on all ranks."""

    work: Work | None
    """None: this rank looks on."""
    alone: float
    device: Device
    """Its stream is this work's own."""
    spread: float = 0.0
    """Of `alone`: distance between the quartiles over the median."""


def measure_beside(timed: Side, other: Side, ranks: Ranks, limits: Limits) -> Outcome:
    """Return the seconds of one run of `timed` while `other` runs all the time.

    All ranks do the same number of runs of both.

    Raises:
        UncoveredError: `timed` is slowed down more than the largest of `COVERS`.
    """
    for cover in COVERS:
        run = _Both(timed=timed, other=other, cover=cover)
        outcome = measure_runs(run, ranks, limits)
        if ranks.slowest(run.uncovered / run.blocks) <= _MOST_UNCOVERED:
            return outcome
    raise UncoveredError(f"running beside other work takes more than {COVERS[-1]} times as long")


@dataclass(slots=True, kw_only=True)
class _Both:
    """Runs both; counts the blocks in which the other work ended first."""

    timed: Side
    other: Side
    cover: float
    blocks: int = field(default=0)
    uncovered: int = field(default=0)

    def __call__(self, runs: int) -> float:
        """Return the seconds of `runs` runs of the timed work."""
        self.blocks += 1
        if self.timed.work is None or self.other.work is None:
            return 0.0
        times = ceil(self.cover * runs * self.timed.alone / self.other.alone) + 1
        work, other = _times(self.timed.work, runs), _times(self.other.work, times)
        if self.timed.device.runtime is None:
            seconds, covered = _in_threads(work, other)
        else:
            seconds, covered = _on_streams(self.timed.device, work, self.other.device, other)
        self.uncovered += not covered
        return seconds


def _in_threads(work: Work, other: Work) -> tuple[float, bool]:
    """Return the wall seconds of `work`, and whether `other` went on for longer."""
    ended: list[float] = []

    def keep_up() -> None:
        other()
        ended.append(perf_counter())

    thread = Thread(target=keep_up)
    thread.start()
    start = perf_counter()
    work()
    end = perf_counter()
    thread.join()
    return end - start, bool(ended) and ended[0] >= end


def _on_streams(device: Device, work: Work, beside: Device, other: Work) -> tuple[float, bool]:
    """Return the device seconds of `work`, and whether `other` went on for longer."""
    runtime = device.runtime
    begin, end, last = (runtime.Event(enable_timing=True) for _ in range(3))
    device.synchronize()
    with runtime.stream(beside.stream):
        other()
        last.record()
    with runtime.stream(device.stream):
        begin.record()
        work()
        end.record()
    device.synchronize()
    return begin.elapsed_time(end) * MS, end.elapsed_time(last) >= 0


def _times(work: Work, count: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(count):
            work()

    return run
