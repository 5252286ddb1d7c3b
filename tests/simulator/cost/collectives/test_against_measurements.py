"""Predictions against published measurements that no constant was fitted to.

Model choices (the form of the terms, the weight of large payloads) were made with all of these
tables in view, so these are regression limits; only rows unseen by anyone are a blind test. Where
a lower bound on the payload is given, smaller ones are further off (see the comments).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from calibrate.collective_points import Point, read_points, split
from calibrate.fit_shipped_collectives import SHIPPED, TABLE, newest_release
from simulator.cost.collectives.select import CollectiveCosts
from simulator.hardware.profile import load_profile
from simulator.parallel.groups import Collective, GroupShape
from simulator.units import GIB, MIB, US
from tests.data import data_folder, needs_data

pytestmark = needs_data

PROFILES = {shipped.gpu: shipped.profile for shipped in SHIPPED if shipped.file != "rtx_pro_6000"}


def errors(rows: pd.DataFrame, profile: str, per_domain: int | None = None) -> np.ndarray:
    """Return predicted / measured - 1 of each row of a table."""
    costs = CollectiveCosts(load_profile(profile))
    predicted = [
        costs.plan(
            Collective(op), payload, GroupShape(size=ranks, per_domain=per_domain or ranks)
        ).seconds
        for op, ranks, payload in zip(
            rows["op"].tolist(),
            rows["gpus"].tolist(),
            rows["bytes"].astype(float).tolist(),
            strict=True,
        )
    ]
    return np.array(predicted) / (rows["time_us"].to_numpy() * US) - 1.0


def median_and_p90(errors: np.ndarray) -> tuple[float, float]:
    return float(np.median(abs(errors))), float(np.percentile(abs(errors), 90))


def single_node(gpu: str) -> pd.DataFrame:
    table = pd.read_csv(data_folder() / TABLE)
    return table[table["gpu"] == gpu]


def log(name: str) -> pd.DataFrame:
    rows = pd.read_csv(data_folder() / "collectives/nccl_logs/parsed.csv")
    return rows[rows["id"] == name]


def as_rows(points: tuple[Point, ...]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "op": [point.collective.value for point in points],
            "gpus": [point.ranks for point in points],
            "bytes": [point.payload for point in points],
            "time_us": [point.seconds / US for point in points],
        }
    )


@pytest.mark.parametrize("gpu", PROFILES)
def test_cells_left_out_of_the_fit(gpu: str) -> None:
    _, held_out = split(read_points(newest_release(single_node(gpu))), seed=0)
    median, p90 = median_and_p90(errors(as_rows(held_out), PROFILES[gpu]))
    assert (median < 0.06, p90 < 0.18) == (True, True), (median, p90)


@pytest.mark.parametrize(
    ("gpu", "release"),
    [
        ("h100_sxm", "2.27.3"),
        ("b200_sxm", "2.27.3"),
        ("b200_sxm", "2.27.5"),
        ("b200_sxm", "2.28.9"),
    ],
)
def test_other_releases_of_the_library(gpu: str, release: str) -> None:
    rows = single_node(gpu)
    median, p90 = median_and_p90(
        errors(rows[rows["nccl_version"].astype(str) == release], PROFILES[gpu])
    )
    assert (median < 0.06, p90 < 0.18) == (True, True), (median, p90)


def test_all_reduce_of_two_to_eight_a100() -> None:
    rows = pd.read_csv(data_folder() / "collectives/vtrain_allreduce.csv")
    median, p90 = median_and_p90(errors(rows, "dgx-a100-80gb"))
    assert (median < 0.03, p90 < 0.06) == (True, True), (median, p90)


@pytest.mark.parametrize(
    ("name", "profile", "per_domain", "at_least", "limit"),
    [
        ("aws_p5_h100_1n", "dgx-h100", 8, 0.0, 0.09),
        # Both A100 machines take up to about twice as long as the fitted table below 16 MiB.
        ("stas_a100_1n", "dgx-a100-80gb", 8, 16 * MIB, 0.09),
        ("dgx_a100_1n_allreduce", "dgx-a100-40gb", 8, 16 * MIB, 0.09),
        # 25 % and 14 % too fast at 512 MiB and 1 GiB.
        ("coreweave_gb200_1rack", "gb200-nvl72", 72, GIB, 0.12),
        ("oci_h100_2n", "dgx-h100", 8, 0.0, 0.09),
        # 23 to 66 % too fast below 16 MiB; why is not known.
        ("cscs_gh200_2n_1gpu", "gh200-node", 1, 16 * MIB, 0.09),
    ],
)
def test_logs_of_other_machines(
    name: str, profile: str, per_domain: int, at_least: float, limit: float
) -> None:
    rows = log(name)
    median, _ = median_and_p90(errors(rows[rows["bytes"] >= at_least], profile, per_domain))
    assert median < limit
