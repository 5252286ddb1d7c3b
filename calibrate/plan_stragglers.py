"""The kernels of a plan that all ranks run at the same time, to find the slow ones of them."""

from __future__ import annotations

from collections.abc import Iterator

from calibrate.operators import TRAFFIC, Operator, row_bytes, whole_rows
from calibrate.plan_case import Case
from calibrate.plan_file import MemoryPlan
from calibrate.plan_gemms import model_products
from calibrate.points import GemmPoint, MemoryBoundPoint, Point

_OPERANDS = 2
"""Tensors of a sum in memory over the bytes that it moves, at most."""
_SUM = Operator.ADD


def stragglers(case: Case) -> Iterator[Point]:
    """Yield the largest products of the model under lasting load, and a sum of large tensors."""
    section, ranks = case.plan.stragglers, case.world.size
    if section is None or ranks == 1:
        return
    gemms = sorted(model_products(case), key=lambda gemm: gemm.flops, reverse=True)
    for gemm in gemms[: section.sustained]:
        yield GemmPoint(
            dtype=case.main_dtype, m=gemm.m, n=gemm.n, k=gemm.k, sustained=True, ranks=ranks
        )
    if section.memory_bound:
        yield _sum(case, ranks)


def _sum(case: Case, ranks: int) -> MemoryBoundPoint:
    section = case.plan.memory_bound or MemoryPlan()
    moved = min(section.most, case.most_moved, case.room / _OPERANDS)
    dtype = case.main_dtype
    rows = whole_rows(_SUM, dtype, moved)
    return MemoryBoundPoint(
        operator=_SUM.value,
        memory_class=TRAFFIC[_SUM].memory_class,
        dtype=dtype,
        bytes=rows * row_bytes(_SUM, dtype),
        ranks=ranks,
    )
