"""The fit finds the constants that made a table, and refuses tables that it cannot read."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import tomlkit

from calibrate.collective_points import Point, read_points, split
from calibrate.collective_residual import residual_curves
from calibrate.fit_collectives import CollectiveFit, fit_collectives, log_errors, without_residual
from calibrate.fit_shipped_collectives import (
    FITTED_FOLDER,
    newest_release,
    read_block,
    write_block,
)
from simulator.cost.collectives.request import Links, Request
from simulator.cost.collectives.select import fastest_plan
from simulator.errors import InputError
from simulator.hardware.collective_constants import (
    CollectiveConstants,
    NvlsConstants,
    PairwiseConstants,
    RingConstants,
)
from simulator.parallel.groups import Collective, GroupShape
from simulator.units import US

START = read_block(FITTED_FOLDER / "nominal_gpu.toml")
RING = RingConstants(
    start=6 * US,
    step_latency=1.2 * US,
    efficiency=0.7,
    chunk_cost=0.3,
    bulk_start=12 * US,
    bulk_step=0.5 * US,
    bulk_bytes=2e6,
)
TRUTH = CollectiveConstants(
    all_reduce=RING,
    all_gather=RING,
    reduce_scatter=RING,
    nvls=NvlsConstants(start=40 * US, efficiency=0.6, min_ranks=8),
    all_to_all=PairwiseConstants(
        start=7 * US,
        peer_latency=0.4 * US,
        efficiency=0.6,
        chunk_cost=0.4,
        bulk_start=5 * US,
        bulk_bytes=4e4,
    ),
    send_recv=START.send_recv,
    host_copy=START.host_copy,
    network=START.network,
)
OPS = ("all_reduce", "all_gather", "reduce_scatter", "alltoall")


def links(constants: CollectiveConstants) -> Links:
    return Links(
        bandwidth=400e9,
        nic_share=0.0,
        hop_latency=0.0,
        in_network_reduction=True,
        host_bandwidth=1.0,
        constants=constants,
    )


def table(constants: CollectiveConstants = TRUTH) -> pd.DataFrame:
    """Return what a machine with these constants would measure."""
    rows = []
    for op in OPS:
        for ranks in (2, 4, 8):
            group = GroupShape(size=ranks, per_domain=ranks)
            for power in range(10, 30):
                request = Request(collective=Collective(op), payload=2.0**power, group=group)
                seconds = fastest_plan(request, links(constants)).seconds
                rows.append(("x", op, "half", ranks, 1, 2**power, seconds / US))
    columns = ["gpu", "op", "dtype", "gpus", "nodes", "bytes", "time_us"]
    return pd.DataFrame(rows, columns=columns)


@pytest.fixture(scope="module")
def fit() -> CollectiveFit:
    return fit_collectives(table(), links(START))


def test_fit_reproduces_the_machine_that_made_the_table(fit: CollectiveFit) -> None:
    points = read_points(table())
    errors = log_errors(points, without_residual(links(fit.constants)))
    assert max(map(abs, errors)) < 0.01


def test_a_random_fifth_is_left_out_and_judges(fit: CollectiveFit) -> None:
    assert (fit.points, len(fit.held_out), len(fit.errors)) == (192, 48, 48)
    assert fit.median_error <= fit.p90_error < 0.01


def test_network_constants_stay_as_they_were(fit: CollectiveFit) -> None:
    assert fit.constants.network == START.network


def test_a_collective_that_was_not_measured_keeps_its_constants() -> None:
    rows = table()
    fitted = fit_collectives(rows[rows["op"] == "alltoall"], links(START)).constants
    assert (fitted.all_reduce, fitted.nvls) == (START.all_reduce, START.nvls)


def test_a_disturbed_point_does_not_make_time_fall_with_payload() -> None:
    group: dict[str, Any] = {"collective": Collective.ALL_GATHER, "ranks": 4}
    times = [20e-6, 60e-6, 21e-6, 22e-6]
    points = [
        Point(payload=2.0 ** (10 + index), seconds=seconds, **group)
        for index, seconds in enumerate(times)
    ]
    curves = residual_curves(points, links(TRUTH))
    corrected = links(TRUTH.model_copy(update={"residual": curves}))
    modelled = [
        math.exp(error) * point.seconds
        for error, point in zip(log_errors(points, corrected), points, strict=True)
    ]
    assert modelled == sorted(modelled)


def test_reductions_of_integers_are_left_out() -> None:
    rows = table().assign(dtype="int8")
    kept = {point.collective.value for point in read_points(rows)}
    assert kept == {"all_gather", "alltoall"}


def test_repeats_of_a_cell_become_their_median() -> None:
    row = table().iloc[[0]]
    repeats = pd.concat([row.assign(time_us=time) for time in (10.0, 11.0, 50.0)])
    assert [point.seconds for point in read_points(repeats)] == [pytest.approx(11 * US)]


def test_split_depends_on_the_seed_only() -> None:
    points = read_points(table())
    assert split(points, 0) == split(points, 0) != split(points, 1)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (table().drop(columns=["nodes"]), "no nodes"),
        (table().assign(nodes=2), "no row"),
        (pd.concat([table(), table().assign(gpu="y")]), "x, y"),
    ],
    ids=["no column", "no single node", "two accelerators"],
)
def test_a_table_that_cannot_be_fitted_is_refused(rows: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_points(rows)


def test_writing_touches_only_its_own_tables(fit: CollectiveFit, tmp_path: Path) -> None:
    path = tmp_path / "fitted.toml"
    other = 'accelerator = "x" # mine\n\n[gemm.bf16]\nsplits = [1]\n\n[[fit]]\nwhat = "gemm"\n'
    path.write_text(other)
    write_block(path, fit, "first")
    write_block(path, fit, "second")
    text = path.read_text()
    written = tomlkit.parse(text).unwrap()
    assert text.startswith('accelerator = "x" # mine\n\n[gemm.bf16]\nsplits = [1]\n')
    assert [record["what"] for record in written["fit"]] == ["gemm", "collectives"]
    assert written["fit"][1]["source"] == "second"


def test_written_constants_are_read_back_to_four_digits(fit: CollectiveFit, tmp_path: Path) -> None:
    path = tmp_path / "fitted.toml"
    write_block(path, fit, "source")
    points = read_points(table())
    read = log_errors(points, links(read_block(path)))
    fitted = log_errors(points, replace(links(fit.constants)))
    assert read == pytest.approx(fitted, abs=1e-3)


def test_the_newest_release_is_found_by_number() -> None:
    rows = pd.DataFrame({"nccl_version": ["2.9.1", "2.27.3", "2.27.11"]})
    assert list(newest_release(rows)["nccl_version"]) == ["2.27.11"]
