"""What chance decides in one simulated run, each from a stream of its own.

The n-th failure of run r draws the same numbers whatever the interval or the spares are: two
choices are compared under the same failures (common random numbers).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np


class Draws(Protocol):
    """Chance in one run."""

    def failure(self) -> float:
        """Return how much hazard passes until the next failure; its mean is 1."""
        ...

    def loses_node(self, share: float) -> bool:
        """Return whether a failure takes a node out, as a share of them does."""
        ...

    def repair(self) -> float:
        """Return the time of a repair over its mean."""
        ...


class RandomDraws:
    """Exponential failures and repairs from a seed and the number of the run."""

    def __init__(self, seed: int, run: int) -> None:
        self._failures, self._kinds, self._repairs = (
            np.random.default_rng((seed, run, stream)) for stream in range(1, 4)
        )

    def failure(self) -> float:
        """Return a draw of the unit exponential distribution."""
        return float(self._failures.exponential())

    def loses_node(self, share: float) -> bool:
        """Return true with the probability `share`."""
        return bool(self._kinds.random() < share)

    def repair(self) -> float:
        """Return a draw of the unit exponential distribution."""
        return float(self._repairs.exponential())
