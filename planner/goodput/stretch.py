"""Training from a restart to whatever ends it: which checkpoints are safe after how long.

A stretch repeats a cycle: train one interval, wait for a checkpoint, go on while it is written (at
once where it is written synchronously). Work is safe when its checkpoint is in storage.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

_EDGE = 1e-6
"""Share of a cycle within which a moment counts as the end of it: rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """An end of a stretch that nothing but a planned stop brings; all in seconds."""

    at: float
    """From the start of the stretch."""
    work: float
    """In storage by then."""
    waited: float
    """For checkpoints, until then."""
    saves: int = 0
    """Checkpoints that only this stop asks for: 0 or 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch of training; all in seconds.

    >>> stretch = Stretch(left=250.0, interval=100.0, slowdown=1.0, stall=10.0, write=5.0)
    >>> stretch.length, stretch.checkpoints(114.0), stretch.checkpoints(115.0)
    (285.0, 0, 1)
    """

    left: float
    """Work that is still to do, in seconds of the whole cluster."""
    interval: float
    """Work between two checkpoints."""
    slowdown: float
    """Time of a step over that on the whole cluster."""
    stall: float
    """Training waits so long for each checkpoint."""
    write: float
    """From there until it is in storage, beside training."""

    @property
    def cycle(self) -> float:
        """Seconds from one checkpoint to the next."""
        return self.interval * self.slowdown + self.stall

    @property
    def inner(self) -> int:
        """Checkpoints before the last one, which ends the run."""
        return max(0, ceil(self.left / self.interval - _EDGE) - 1)

    @property
    def length(self) -> float:
        """Seconds to the end of the run, its last checkpoint in storage."""
        last = self.left - self.inner * self.interval
        return self.inner * self.cycle + last * self.slowdown + self.stall + self.write

    def checkpoints(self, elapsed: float) -> int:
        """Return how many checkpoints, the last apart, are safe after `elapsed` seconds."""
        return min(self.inner, max(0, floor((elapsed - self.write) / self.cycle + _EDGE)))

    @property
    def end(self) -> Stop:
        """The end of the run."""
        waited = (self.inner + 1) * self.stall + self.write
        return Stop(at=self.length, work=self.left, waited=waited)

    def next_checkpoint(self, elapsed: float) -> Stop:
        """Return the first stop from `elapsed` on at which nothing but a write is lost."""
        count = max(1, ceil((elapsed - self.write) / self.cycle - _EDGE))
        return self.end if count > self.inner else self._after(count)

    def own_checkpoint(self, elapsed: float) -> Stop:
        """Return the stop with a checkpoint that is begun at `elapsed`, where one is needed.

        One that is under way, or that was just taken, is waited for instead.

        >>> stretch = Stretch(left=250.0, interval=100.0, slowdown=1.0, stall=10.0, write=5.0)
        >>> stretch.own_checkpoint(150.0)
        Stop(at=165.0, work=140.0, waited=25.0, saves=1)
        """
        now = max(0.0, elapsed)
        count = min(self.inner, floor(now / self.cycle + _EDGE))
        trained = now - count * self.cycle
        piece = min(self.interval, self.left - count * self.interval) * self.slowdown
        if trained <= _EDGE * self.cycle:
            return self._after(count)
        if trained >= piece - _EDGE * self.cycle:
            return self.end if count == self.inner else self._after(count + 1)
        return Stop(
            at=now + self.stall + self.write,
            work=count * self.interval + trained / self.slowdown,
            waited=(count + 1) * self.stall + self.write,
            saves=1,
        )

    def cut(self, elapsed: float) -> Stop:
        """Return what a failure after `elapsed` seconds leaves."""
        done = self.checkpoints(elapsed)
        return Stop(at=elapsed, work=done * self.interval, waited=done * self.stall)

    def _after(self, count: int) -> Stop:
        """Return the stop once checkpoint `count` is in storage, training beside its write lost."""
        write = self.write if count else 0.0
        return Stop(
            at=count * self.cycle + write, work=count * self.interval, waited=count * self.stall
        )
