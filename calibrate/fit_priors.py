"""Where a fit starts, and how far from there it may go: the constants of the base profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from calibrate.log_fit import FreeConstant
from simulator.files import FileRecord
from simulator.hardware.constants import FittedConstants, Origin

KNOWN = 0.3
"""Spread of log(constant) where the base was fitted on a machine of the kind: the median, over the
constants of kernels and collectives, of that between the shipped A100, H100 and B200."""
ASSUMED = 1.0
"""The same where the base's constants are assumed: a factor of e either way."""
_REACH = 1e4
"""A constant may end this many times below or above where it starts; priors hold it long before."""


def prior_spread(constants: FittedConstants, *blocks: str) -> float:
    """Return how well the base knows a block: the first of the names that it has a record of."""
    by_name = {record.what: record.origin for record in constants.fit}
    origin = next((by_name[name] for name in blocks if name in by_name), Origin.NOMINAL)
    return ASSUMED if origin is Origin.NOMINAL else KNOWN


def free_constants(
    record: FileRecord,
    names: Iterable[str],
    spread: float,
    limits: Mapping[str, tuple[float, float]],
) -> dict[str, FreeConstant]:
    """Return the named constants of a record as free ones, around what they are.

    A constant that is 0 stays 0: the base says that the effect is not there.
    """
    free = {}
    for name in names:
        value = float(getattr(record, name))
        if value > 0:
            low, high = limits.get(name, (0.0, float("inf")))
            free[name] = FreeConstant(
                prior=min(max(value, low), high),
                low=max(value / _REACH, low),
                high=min(value * _REACH, high),
                spread=spread,
            )
    return free
