"""All pipeline schedules; one line adds one, and `tests/simulator/schedule` checks it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from simulator.parallel.layout import ScheduleName
from simulator.schedule.action import Schedule
from simulator.schedule.gpipe import gpipe, gpipe_warm_up
from simulator.schedule.interleaved import interleaved, interleaved_warm_up
from simulator.schedule.one_f_one_b import one_f_one_b, one_f_one_b_warm_up

SCHEDULES: dict[ScheduleName, Callable[[int, int, int], Schedule]] = {
    ScheduleName.GPIPE: gpipe,
    ScheduleName.ONE_F_ONE_B: one_f_one_b,
    ScheduleName.INTERLEAVED: interleaved,
}

WARM_UPS: dict[ScheduleName, Callable[[int, int, int, int], int]] = {
    ScheduleName.GPIPE: gpipe_warm_up,
    ScheduleName.ONE_F_ONE_B: one_f_one_b_warm_up,
    ScheduleName.INTERLEAVED: interleaved_warm_up,
}
"""Forward passes of a stage (stage, pp, vpp, micro-batches) before passes come in pairs."""


@lru_cache(maxsize=64)
def build_schedule(name: ScheduleName, pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return the actions of every stage, in order."""
    return SCHEDULES[name](pp, vpp, micro_batches)
