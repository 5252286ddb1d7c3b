"""All pipeline schedules; one line adds one, and `tests/simulator/schedule` checks it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from simulator.parallel.layout import ScheduleName
from simulator.schedule.action import Schedule
from simulator.schedule.gpipe import gpipe
from simulator.schedule.interleaved import interleaved
from simulator.schedule.one_f_one_b import one_f_one_b

SCHEDULES: dict[ScheduleName, Callable[[int, int, int], Schedule]] = {
    ScheduleName.GPIPE: gpipe,
    ScheduleName.ONE_F_ONE_B: one_f_one_b,
    ScheduleName.INTERLEAVED: interleaved,
}


@lru_cache(maxsize=64)
def build_schedule(name: ScheduleName, pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return the actions of every stage, in order."""
    return SCHEDULES[name](pp, vpp, micro_batches)
