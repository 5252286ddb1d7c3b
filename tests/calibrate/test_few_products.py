"""Forty products are enough where the base only assumes: the rest of their table is predicted."""

from __future__ import annotations

import numpy as np
import pytest

from calibrate.fit_block import errors
from calibrate.fit_gemm import gemm_model
from calibrate.kernel_tables import read_gemms
from calibrate.log_fit import FreeConstant, find, loss_weights
from calibrate.points import GemmPoint
from calibrate.records import Record
from simulator.hardware.accelerator import Dtype
from simulator.hardware.profile import load_profile
from tests.data import data_folder, needs_data

TABLES = {
    "dgx-a100-80gb": "a100_sxm_gemm_vllm_0.14.0",
    "dgx-h100": "h100_sxm_gemm_vllm_0.24.0",
    "dgx-b200": "b200_sxm_gemm_vllm_0.24.0",
}
ASSUMED = "mi300x-node"
"""A profile whose products were not measured."""
SMALLEST, FEW, JUDGED = 128, 40, 1000


@needs_data
@pytest.mark.parametrize(("machine", "table"), TABLES.items())
def test_forty_products_predict_the_others(machine: str, table: str) -> None:
    read = read_gemms(data_folder() / f"kernels/{table}.csv", Dtype.BF16, least=SMALLEST)
    records = [
        Record(point=GemmPoint(dtype=Dtype.BF16, m=int(m), n=int(n), k=int(k)), seconds=float(t))
        for (m, n, k), t in zip(read.shapes.T, read.seconds, strict=True)
    ]
    order = np.random.default_rng(0).permutation(len(records))
    few, others = ([records[i] for i in part] for part in (order[:FEW], order[FEW:JUDGED]))
    assumed = {"constants": load_profile(ASSUMED).constants}
    start = load_profile(machine).model_copy(update=assumed)
    model = gemm_model(Dtype.BF16, few)
    found = errors(model, others, model.fit(few, start).profile)
    assert np.median(found) <= 0.07
    assert np.median(found) < np.median(errors(model, others, start))


def test_more_points_settle_a_constant_better() -> None:
    random = np.random.default_rng(0)
    free = {"x": FreeConstant(prior=1.0, low=0.1, high=10.0)}
    noise = {count: 0.02 * random.standard_normal(count) for count in (10, 1000)}
    few, many = (
        find(free, lambda v, each=each: np.log(v["x"] / 2) + each).uncertainty["x"]  # type: ignore[misc]
        for each in noise.values()
    )
    assert many == pytest.approx(0.02 / 1000**0.5, rel=0.2)
    assert many < few / 5


def test_a_constant_without_points_is_as_uncertain_as_its_prior() -> None:
    free = {"x": FreeConstant(prior=1.0, low=0.1, high=10.0, spread=0.3)}
    found = find(free, lambda _: np.zeros(5))
    assert found.uncertainty["x"] == pytest.approx(0.3, rel=1e-3)


def test_a_point_far_off_hardly_counts() -> None:
    assert loss_weights(np.array([0.0, 0.3])).tolist() == pytest.approx([1.0, 0.1644], rel=1e-3)
