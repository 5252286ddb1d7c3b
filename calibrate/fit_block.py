"""One block of constants: what fits it, what predicts its points, and whether the fit is kept.

A block is data (`BlockModel`) plus the one procedure here. `judge` leaves points out in turn and
compares the error of constants that have not seen them with that of the constants the fit started
from; where the fit is worse, the block keeps those.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from calibrate.log_fit import Array, loss_weights
from calibrate.records import Record
from simulator.hardware.profile import Profile

FOLDS = 10
"""Parts that are left out in turn where a block has more than `LEAVE_ONE_OUT` points."""
LEAVE_ONE_OUT = 30
"""Points up to which each is left out alone."""
LEAST_POINTS = 3
"""Fewer say nothing of an error on points left out."""
DISAGREES = 0.2
"""Weight in the soft loss below which a point counts as one that disagrees with the rest: it is
`SOFT` / `DISAGREES`, about 25 %, off."""

WIDEST = 0.99
"""Interval that a profile can state at most: a forecast that far off says nothing."""
_WORST = 1.0
"""Error that a single point may count for: one off by more is a disturbed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """A profile with the constants of one block fitted."""

    profile: Profile
    uncertainty: dict[str, float]
    """Standard deviation of the log of each constant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockModel:
    """How one block of constants is fitted and judged."""

    name: str
    """As `FitRecord.what` says it."""
    takes: Callable[[Record], bool]
    """Whether a record that is fine speaks of this block."""
    fit: Callable[[Sequence[Record], Profile], Fitting]
    predict: Callable[[Sequence[Record], Profile], Array]
    """Seconds of each record."""
    together: Callable[[Record], Hashable] | None = None
    """What is left out together; None leaves out single points."""
    replaces: tuple[str, ...] = ()
    """Other records of the base's constants that a fit makes untrue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Errors |predicted / measured - 1| on points left out in turn."""

    fitted: Array
    default: Array
    """Of the constants that the fit started from, on the same points."""

    @property
    def means(self) -> tuple[float, float]:
        """The mean errors of the fit and of what it started from.

        No error counts for more than `_WORST`. A median would not see that a base fails on a third
        of the points.
        """
        own, base = (np.minimum(each, _WORST).mean() for each in (self.fitted, self.default))
        return float(own), float(base)

    @property
    def is_better(self) -> bool:
        """Whether the fit is at least as good as what it started from; unjudged, it is."""
        if not self.fitted.size:
            return True
        own, base = self.means
        return own <= base


def judge(model: BlockModel, records: Sequence[Record], start: Profile) -> Judgement:
    """Return the errors of a block's fit, and of `start`, on points left out in turn."""
    if len(records) < LEAST_POINTS:
        return Judgement(fitted=np.zeros(0), default=np.zeros(0))
    fitted = np.zeros(len(records))
    for fold in _folds(model, records):
        kept = [record for index, record in enumerate(records) if index not in fold]
        left = [records[index] for index in fold]
        fitted[list(fold)] = errors(model, left, model.fit(kept, start).profile)
    return Judgement(fitted=fitted, default=errors(model, records, start))


def errors(model: BlockModel, records: Sequence[Record], profile: Profile) -> Array:
    """Return |predicted / measured - 1| of each record."""
    return abs(np.expm1(log_errors(model, records, profile)))


def log_errors(model: BlockModel, records: Sequence[Record], profile: Profile) -> Array:
    """Return log(predicted / measured) of each record."""
    if not records:
        return np.zeros(0)
    logs: Array = np.log(model.predict(records, profile) / seconds_of(records))
    return logs


def outliers(model: BlockModel, records: Sequence[Record], profile: Profile) -> list[Record]:
    """Return the records that the soft loss all but ignores."""
    weights = loss_weights(log_errors(model, records, profile))
    return [record for record, weight in zip(records, weights, strict=True) if weight < DISAGREES]


def seconds_of(records: Sequence[Record]) -> Array:
    """Return the measured seconds; a record that is fine has some."""
    times = [record.seconds for record in records]
    return np.array([seconds for seconds in times if seconds is not None])


def _folds(model: BlockModel, records: Sequence[Record]) -> list[tuple[int, ...]]:
    """Return the indices that are left out together, one tuple a fit; repeats of a point always."""
    groups: dict[Hashable, list[int]] = {}
    for index, record in enumerate(records):
        same = record.point if model.together is None else model.together(record)
        groups.setdefault(same, []).append(index)
    parts = [tuple(group) for group in groups.values()]
    if len(parts) == 1:
        return [(index,) for index in range(len(records))]
    if model.together is not None or len(parts) <= LEAVE_ONE_OUT:
        return parts
    return [tuple(chain.from_iterable(parts[first::FOLDS])) for first in range(FOLDS)]
