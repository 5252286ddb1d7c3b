"""Times calls that ranks start apart, as in a training step, on the rank that starts last.

Knows nothing of torch. The ranks draw the same random waits, so that each knows who is last.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter

from calibrate.limits import APART_SECONDS
from calibrate.measuring import Ranks

MOST_CALLS = 20
"""Isolated calls of one block; the median of more is no better, and barriers take their time."""
_SEED = 0
"""Of the waits, on all ranks; any number would do."""


def wait_busily(seconds: float) -> None:
    """Return after `seconds`, to the microsecond: a sleeping process wakes up later."""
    end = perf_counter() + seconds
    while perf_counter() < end:
        pass


@dataclass(slots=True, kw_only=True)
class Apart:
    """Starts calls apart; called with a count it returns the seconds of that many calls.

    The seconds of one are the median over calls of what the rank takes that starts last, in the
    slowest group where several are at work: all ranks of the groups return the same. A rank outside
    the groups takes part in the decisions and returns 0.
    """

    ranks: Ranks
    size: int
    """Ranks of one group."""
    index: int | None = None
    """Of this rank in its group; None is outside."""
    meet: Callable[[], object] = lambda: None
    """Returns when all ranks of the group have come here and their devices are idle."""
    call: Callable[[], float] = lambda: 0.0
    """Makes one call and returns this rank's seconds for it."""
    wait: Callable[[float], None] = wait_busily
    _random: random.Random = field(default_factory=lambda: random.Random(_SEED))

    def __call__(self, runs: int) -> float:
        """Return the seconds of `runs` calls, of which at most `MOST_CALLS` are made."""
        seconds = median(self._one() for _ in range(min(runs, MOST_CALLS))) * runs
        return 0.0 if self.index is None else seconds

    def _one(self) -> float:
        """Return the seconds of one call on the rank that starts it last; the same on all."""
        waits = [self._random.uniform(0, APART_SECONDS) for _ in range(self.size)]
        if self.index is None:
            return self.ranks.slowest(0.0)
        self.meet()
        self.wait(waits[self.index])
        own = self.call()
        is_last = waits[self.index] == max(waits)
        return self.ranks.slowest(own if is_last else 0.0)
