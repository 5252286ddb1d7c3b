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

    def safe_from(self, elapsed: float) -> float:
        """Return the first moment from `elapsed` on at which nothing but a write is lost."""
        count = max(1, ceil((elapsed - self.write) / self.cycle - _EDGE))
        return self.length if count > self.inner else count * self.cycle + self.write
