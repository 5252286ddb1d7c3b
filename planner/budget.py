"""How long a search goes on before it takes the best that it has found."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from time import monotonic

from planner.result import Front, Searched
from simulator.scenario import SearchFile

_SHOWN = 1e-4
"""What a gap is rounded up to where it is shown."""


class Budget:
    """The time and the exact estimates that one search may take; owns their count.

    A limit of estimates cuts a search short at the same layout every time, one of time does not.
    """

    def __init__(
        self,
        *,
        seconds: float | None = None,
        estimates: int | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._clock, self._estimates = clock, estimates
        self._end = None if seconds is None else clock() + seconds
        self.estimated = 0
        """Layouts whose step time was computed exactly."""

    @classmethod
    def of(cls, search: SearchFile) -> Budget:
        """Return what a search table allows; its time begins to run."""
        return cls(seconds=search.time_limit, estimates=search.max_estimates)

    def again(self) -> Budget:
        """Return a budget of as many estimates as this one had, which ends when this one does."""
        other = Budget(estimates=self._estimates, clock=self._clock)
        other._end = self._end
        return other

    def count(self) -> None:
        """Count one exact estimate."""
        self.estimated += 1

    @property
    def spent(self) -> bool:
        """Whether nothing is left of it."""
        if self._estimates is not None and self.estimated >= self._estimates:
            return True
        return self._end is not None and self._clock() >= self._end


def proved_gap(best: float, least_open: float | None) -> float:
    """Return the part of the best value by which any unsettled layout could be better at most.

    `least_open` is a lower bound of the values of all of them; None where there are none.

    >>> proved_gap(10.0, 9.5)
    0.05
    >>> proved_gap(10.0, 12.0)
    0.0
    """
    if least_open is None or best <= 0:
        return 0.0
    return max(0.0, 1 - max(0.0, least_open) / best)


def cut_notes(searched: Searched) -> tuple[str, ...]:
    """Return a warning where a search was cut short, with what is proved all the same."""
    if searched.gap is None:
        return ()
    return (
        f"the search was cut short after {searched.estimated} exact estimates of "
        f"{searched.fitting} layouts that fit; no other layout is better than the best one by more "
        f"than {shown_gap(searched.gap)}, as far as estimates tell",
    )


def front_notes(front: Front | None) -> tuple[str, ...]:
    """Return a warning where the search for a Pareto front was cut short."""
    if front is None or not front.left_open:
        return ()
    return (
        f"the Pareto front was cut short: {front.left_open} layouts that fit were not settled, "
        "and any of them could be on it, in place of some that are",
    )


def shown_gap(gap: float) -> str:
    """Return a proved gap as a percentage, rounded up.

    >>> shown_gap(0.05001)
    '5.01%'
    """
    return f"{ceil(gap / _SHOWN) * _SHOWN:.2%}"
