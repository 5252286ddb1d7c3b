"""Which function measures which kind of point; a module is read when its first point comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from calibrate.measure_context import Context
from calibrate.measuring import Outcome
from calibrate.points import (
    AttentionPoint,
    CollectivePoint,
    GemmPoint,
    HostCopyPoint,
    InterferencePoint,
    LaunchPoint,
    LayerPoint,
    MemoryBoundPoint,
    Point,
    SoakPoint,
    StepPoint,
    UpkeepPoint,
)
from simulator.errors import InputError, Problem

Measure = Callable[[Point, Context], Outcome]

MEASURES: Mapping[type, tuple[str, str]] = {
    GemmPoint: ("calibrate.measure_kernels", "measure_gemm"),
    AttentionPoint: ("calibrate.measure_attention", "measure_attention"),
    MemoryBoundPoint: ("calibrate.measure_memory", "measure_memory_bound"),
    HostCopyPoint: ("calibrate.measure_memory", "measure_host_copy"),
    LaunchPoint: ("calibrate.measure_host", "measure_launch"),
    SoakPoint: ("calibrate.measure_host", "measure_soak"),
    CollectivePoint: ("calibrate.measure_collectives", "measure_collective"),
    InterferencePoint: ("calibrate.measure_interference", "measure_interference"),
    LayerPoint: ("calibrate.measure_layers", "measure_layer"),
    UpkeepPoint: ("calibrate.measure_upkeep", "measure_upkeep"),
    StepPoint: ("calibrate.measure_steps", "measure_step"),
}
"""Module and function by kind of point; sums of a profiler's trace are only imported."""


def measure(point: Point, context: Context) -> Outcome:
    """Return what measuring a point yields.

    Raises:
        InputError: it is to be run by another number of processes at once than are here.
        Exception: what its function raises.
    """
    _check_ranks(point, context)
    module, name = MEASURES[type(point)]
    function: Measure = getattr(import_module(module), name)
    return function(point, context)


def _check_ranks(point: Point, context: Context) -> None:
    here = context.ranks.size
    if isinstance(point, StepPoint) and point.layout.world_size > 1:
        return
    if (
        isinstance(point, GemmPoint | MemoryBoundPoint | LayerPoint | UpkeepPoint | StepPoint)
        and point.ranks != here
    ):
        rule = f"says how many processes run it at the same time, and here {here} do"
        raise InputError(
            Problem(
                where="point", key="ranks", found=str(point.ranks), rule=rule, fix=f"use {here}"
            )
        )
