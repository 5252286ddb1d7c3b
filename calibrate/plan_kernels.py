"""The kernels of a plan on one device, by their value: products, attention, memory, copies."""

from __future__ import annotations

from collections.abc import Iterator

from calibrate.operators import TRAFFIC, Operator, row_bytes, whole_rows
from calibrate.plan_attention import model_attention, spread_attention
from calibrate.plan_case import Case
from calibrate.plan_file import MemoryPlan
from calibrate.plan_gemms import model_gemms, spread_gemms, sustained_gemms
from calibrate.points import (
    Direction,
    HostCopyPoint,
    Launch,
    LaunchPoint,
    MemoryBoundPoint,
    Point,
    SoakPoint,
)
from calibrate.spread import sizes_by_factor
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout, MemoryClass

_COPIES = 2
"""Of a host copy: the buffer here and the one there."""
_OPERANDS = 2
"""Tensors of an operator in memory over the bytes that it moves, at most: masks, copies."""


def first_kernels(case: Case) -> Iterator[Point]:
    """Yield what a fit needs most: the model's own shapes, one operator of each class, copies."""
    if case.plan.launch:
        yield LaunchPoint(launch=Launch.KERNEL)
    yield from model_gemms(case, GemmLayout.FORWARD)
    yield from model_attention(case)
    yield from _memory_bound(case, first_of_class=True)
    yield from model_gemms(case, GemmLayout.INPUT_GRADIENT)
    yield from model_gemms(case, GemmLayout.WEIGHT_GRADIENT)
    yield from _copies(case)


def spread_kernels(case: Case) -> Iterator[Point]:
    """Yield shapes spread over all sizes, then the soak and what is timed in its heat."""
    yield from spread_gemms(case)
    yield from spread_attention(case)
    yield from _memory_bound(case, first_of_class=False)
    if case.plan.soak is not None:
        yield SoakPoint(dtype=case.main_dtype, duration=case.plan.soak.duration)
    yield from sustained_gemms(case)


def more_kernels(case: Case) -> Iterator[Point]:
    """Yield memory-bound operators at the sizes in between."""
    section = case.plan.memory_bound
    if section is not None and section.between:
        for operator in section.operators:
            yield from _sizes(case, section, operator, section.between)


def _memory_bound(case: Case, *, first_of_class: bool) -> Iterator[MemoryBoundPoint]:
    """Yield operators at coarse sizes: the first named of each class, or all others."""
    section = case.plan.memory_bound
    if section is None:
        return
    seen: set[MemoryClass] = set()
    for operator in section.operators:
        kind = TRAFFIC[operator].memory_class
        if (kind not in seen) is first_of_class:
            yield from _sizes(case, section, operator)
        seen.add(kind)


def _sizes(
    case: Case, section: MemoryPlan, operator: Operator, between: int = 0
) -> Iterator[MemoryBoundPoint]:
    """Yield one operator at the coarse sizes, or at those `between` them, in whole rows."""
    traffic = TRAFFIC[operator]
    most = min(section.most, case.most_moved, case.room / _OPERANDS)
    for dtype in _formats(case, section, traffic.dtype):
        for moved in sizes_by_factor(section.least, most, section.factor, between):
            rows = whole_rows(operator, dtype, moved)
            yield MemoryBoundPoint(
                operator=operator.value,
                memory_class=traffic.memory_class,
                dtype=dtype,
                bytes=rows * row_bytes(operator, dtype),
            )


def _formats(case: Case, section: MemoryPlan, only: Dtype | None) -> tuple[Dtype, ...]:
    return case.dtypes(section.dtypes) if only is None else (only,)


def _copies(case: Case) -> Iterator[HostCopyPoint]:
    section = case.plan.host_copy
    if section is None:
        return
    most = min(section.most, case.most_moved, case.room / _COPIES)
    for size in sizes_by_factor(section.least, most, section.factor):
        for direction in Direction:
            yield HostCopyPoint(direction=direction, bytes=size)
