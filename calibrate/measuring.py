"""What a measuring function is given and what it returns; knows nothing of torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from calibrate.records import Clocks


class Ranks(Protocol):
    """The processes that measure a point together.

    Every decision of a measuring loop (how many runs, whether to go on) is taken on values that
    all ranks share, so that all do the same number of collectives.
    """

    @property
    def rank(self) -> int:
        """This process."""

    @property
    def size(self) -> int:
        """All of them."""

    def slowest(self, seconds: float) -> float:
        """Return the largest value that any rank gave; the same on all."""

    def gather(self, seconds: float) -> tuple[float, ...]:
        """Return what every rank gave, by rank; the same on all."""

    def barrier(self) -> None:
        """Return when all ranks have come here."""


@dataclass(frozen=True, slots=True)
class Alone:
    """One process."""

    rank: int = 0
    size: int = 1

    def slowest(self, seconds: float) -> float:
        """Return what this process gave."""
        return seconds

    def gather(self, seconds: float) -> tuple[float, ...]:
        """Return what this process gave."""
        return (seconds,)

    def barrier(self) -> None:
        """Return at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What measuring a point yields; fields as in `Record`."""

    seconds: float
    spread: float
    samples: int
    outliers: int = 0
    by_rank: tuple[float, ...] = ()
    values: Mapping[str, float] = field(default_factory=dict)
    algorithm: str | None = None
    protocol: str | None = None
    clocks: Clocks | None = None


class TooLargeError(Exception):
    """A point does not fit in memory; larger ones of its family will not either."""
