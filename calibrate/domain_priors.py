"""Where the constants of collectives in one domain start, and how far from there they may go."""

from __future__ import annotations

from calibrate.fit_priors import ASSUMED
from calibrate.log_fit import FreeConstant
from simulator.files import FileRecord
from simulator.hardware.collective_constants import (
    CollectiveConstants,
    NvlsConstants,
    RingConstants,
)
from simulator.parallel.groups import Collective
from simulator.units import KIB, US

_REACH = 1e3
"""A constant may end this many times below or above where it starts."""
_FLOOR = {
    "start": US,
    "step_latency": 0.1 * US,
    "peer_latency": 0.1 * US,
    "efficiency": 1e-4,
    "chunk_cost": 0.01,
    "bulk_start": 0.1 * US,
    "bulk_step": 0.01 * US,
    "bulk_bytes": KIB,
}
"""A search in logarithms cannot start at 0: what counts as nothing beside the other terms."""
_THRESHOLDS = ("bulk_start", "bulk_step", "bulk_bytes", "chunk_cost")
"""Where a library changes its protocol and what that costs: a base says little of it. Its
spread between the shipped A100, H100 and B200 is 0.4 for rings and 1.9 for all-to-all."""


def ring_prior(
    ring: Collective, leader: Collective, base: CollectiveConstants, now: CollectiveConstants
) -> RingConstants:
    """Return the base's constants of a ring, moved as the fit has moved the leader's."""
    own, before, after = (
        _above_floor(getattr(constants, kind.value))
        for constants, kind in ((base, ring), (base, leader), (now, leader))
    )
    if ring is leader:
        return RingConstants(**own)
    return RingConstants(**{name: own[name] * after[name] / before[name] for name in own})


def free_of(prior: FileRecord, spread: float) -> dict[str, FreeConstant]:
    """Return all constants of a record as free ones, believed within `spread` of their logs."""
    return {
        name: FreeConstant(
            prior=value,
            low=value / _REACH,
            high=value * _REACH,
            spread=ASSUMED if name in _THRESHOLDS else spread,
        )
        for name, value in _above_floor(prior).items()
    }


def free_switch(switch: NvlsConstants, spread: float) -> dict[str, FreeConstant]:
    """Return the constants of a reduction in the switch as free ones; its group size stays."""
    free = free_of(switch, spread)
    return {name: value for name, value in free.items() if name != "min_ranks"}


def _above_floor(record: FileRecord) -> dict[str, float]:
    return {
        name: max(float(value), _FLOOR.get(name, 0.0))
        for name, value in record.model_dump().items()
    }
