"""A stack's own speed of narrow matrix products."""

from __future__ import annotations

import pytest

from simulator.cost.blocks import KernelCosts
from simulator.cost.collectives.select import CollectiveCosts
from simulator.hardware.accelerator import Dtype
from simulator.workload.operator import Gemm
from simulator.workload.stack import Fit
from tests.fakes import (
    PEAK,
    fake_accelerator,
    fake_constants,
    fake_gemm,
    fake_profile,
    fake_stack,
)

SIDE = 1000
SECONDS = 2 * SIDE**3 / PEAK


def seconds(dtype: Dtype, *, narrow: bool) -> float:
    formats = (Dtype.BF16, Dtype.FP8)
    profile = fake_profile(
        accelerator=fake_accelerator(peak=dict.fromkeys(formats, PEAK)),
        constants=fake_constants(gemm={kind: fake_gemm() for kind in formats}),
    )
    fit = Fit(fp8={"fake": 0.5}, fp4={"fake": 4.0}, spread=0.1, spread_source="made up")
    costs = KernelCosts(profile, fake_stack(fit=fit), dtype, CollectiveCosts(profile))
    return costs.operator_seconds(Gemm(name="x", m=SIDE, n=SIDE, k=SIDE, narrow=narrow))


@pytest.mark.parametrize(
    ("dtype", "narrow", "factor"),
    [(Dtype.FP8, True, 0.5), (Dtype.FP8, False, 1.0), (Dtype.BF16, True, 1.0)],
)
def test_only_narrow_products_take_the_stacks_own_time(
    dtype: Dtype, narrow: bool, factor: float
) -> None:
    assert seconds(dtype, narrow=narrow) == pytest.approx(factor * SECONDS)
