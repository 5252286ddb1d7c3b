"""The matrix products of a plan: the model's own in all layouts, and shapes spread over sizes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from calibrate.plan_case import Case, model_pieces
from calibrate.plan_file import GemmPlan
from calibrate.points import GemmPoint
from calibrate.spread import size_at, spread_points
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout
from simulator.workload.operator import Gemm, backward_gemms

_WIDEST = 4.0
"""Bytes of the widest element, float32."""
_DRAWS = 50
"""Tries for one spread shape, as a slow device does few of all sizes in time."""


def model_gemms(case: Case, layout: GemmLayout) -> Iterator[GemmPoint]:
    """Yield the model's products of one layout; weight gradients also added to float32."""
    section = case.plan.gemm
    if section is None or not section.model:
        return
    for dtype, gemm in product(case.dtypes(section.dtypes), model_products(case)):
        by_layout = {each.layout: each for each in (gemm, *backward_gemms(gemm))}
        chosen = by_layout[layout]
        point = GemmPoint(dtype=dtype, m=chosen.m, n=chosen.n, k=chosen.k, layout=layout)
        yield point
        added = layout is GemmLayout.WEIGHT_GRADIENT and dtype is not Dtype.FP8
        if section.accumulate and added:
            yield point.model_copy(update={"accumulate": True})


def spread_gemms(case: Case) -> Iterator[GemmPoint]:
    """Yield products over all sizes that the device does in time, in all layouts in turn."""
    section = case.plan.gemm
    if section is None:
        return
    for dtype in case.dtypes(section.dtypes):
        draws = islice(spread_points(4), _DRAWS * section.spread)
        drawn = (_drawn(shares, section) for shares in draws)
        fitting = (gemm for gemm in drawn if _fits(case, gemm))
        for gemm in islice(fitting, section.spread):
            yield GemmPoint(dtype=dtype, m=gemm.m, n=gemm.n, k=gemm.k, layout=gemm.layout)


def sustained_gemms(case: Case) -> Iterator[GemmPoint]:
    """Yield the largest products of the model once more, to be timed under lasting load."""
    count = case.plan.gemm.sustained if case.plan.gemm is not None else 0
    points = list(model_gemms(case, GemmLayout.FORWARD)) if count else []
    points.sort(key=lambda point: point.m * point.n * point.k, reverse=True)
    for point in points[:count]:
        yield point.model_copy(update={"sustained": True})


def model_products(case: Case) -> list[Gemm]:
    """Return the distinct forward products of the model that run in time, one by one."""
    found: dict[tuple[int, int, int], Gemm] = {}
    for piece in model_pieces(case):
        if isinstance(piece, Gemm) and piece.batch == 1 and _fits(case, piece):
            found.setdefault((piece.m, piece.n, piece.k), piece)
    return list(found.values())


def _drawn(shares: tuple[float, ...], section: GemmPlan) -> Gemm:
    *sizes, of_layout = shares
    layouts = tuple(GemmLayout)
    m, n, k = (size_at(u, section.least, section.most, section.multiple) for u in sizes)
    layout = layouts[int(of_layout * len(layouts))]
    return Gemm(name="spread", m=m, n=n, k=k, layout=layout)


def _fits(case: Case, gemm: Gemm) -> bool:
    """Return whether a product runs in time and its matrices have room."""
    elements = gemm.m * gemm.k + gemm.k * gemm.n + gemm.m * gemm.n
    return gemm.flops <= case.most_flops and _WIDEST * elements <= case.room
