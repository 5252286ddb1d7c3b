"""Logs of several nodes from the single-node fit, the line rate and one latency a fabric.

What was fitted, on what:

* constants inside a node: on other tables of one node (`collectives/nccl_single_node.csv`); the
  shipped files hold them;
* the four constants of a hop (`packet_*`, `fill*`): on the H100 logs over InfiniBand of issue 309
  and of the GTC figure; the shipped files hold the same for all machines;
* the latency of a hop: here, once a fabric, on three messages of one log (`FITTED`), which are not
  judged;
* NIC rates are line rates times the efficiency in the profile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibrate.collective_points import Point
from calibrate.fit import fit_folder
from calibrate.fit_latency import predict_alone, with_latency
from calibrate.log_fit import Array
from calibrate.points import CollectivePoint
from calibrate.records import Fingerprint, Record
from calibrate.validation.cells import Row
from calibrate.validation.machines import Machines
from simulator.cost.collectives.request import Links, links_of
from simulator.parallel.groups import Collective
from simulator.units import US
from tests.calibrate.fit_folders import write_folder
from tests.data import data_folder, needs_data

pytestmark = needs_data

FITTED = (64.0, 1024.0, 4096.0)
"""Bytes of the messages that give a fabric its latency, where its log has them."""
FABRICS = {
    "nccltests309_h100_2n": ("nccltests309_h100_2n", "nccltests309_h100_4n"),
    "aws_p4de_a100_2n": ("aws_p4de_a100_2n",),
    "cscs_gh200_2n": ("cscs_gh200_2n", "cscs_gh200_2n_1gpu"),
    "gcp_a3mega_h100_2n": ("gcp_a3mega_h100_2n",),
    "gcp_a4xmax_gb300_2n_jobset": ("gcp_a4xmax_gb300_2n_jobset",),
    "oci_h100_2n": ("oci_h100_2n",),
}
"""The log that gives the latency -> the logs of the fabric. The last has large messages only, and
keeps the latency of its profile."""
SOCKETS = "cscs_gh200_2n_tcp"
UNSEEN = tuple(log for log in FABRICS if not log.startswith("nccltests309"))
"""Fabrics that fitted none of the shipped constants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """One log: its points, and the links of a rank by the profile."""

    points: tuple[Point, ...]
    links: Links

    def errors(self, links: Links, *, without: tuple[float, ...] = ()) -> Array:
        kept = [point for point in self.points if point.payload not in without]
        measured = np.array([point.seconds for point in kept])
        return np.asarray(abs(predict_alone(kept, links) / measured - 1))


@cache
def machines() -> Machines:
    return Machines(None)


@cache
def read_log(name: str) -> Log:
    table = pd.read_csv(data_folder() / "collectives/nccl_logs/parsed.csv", dtype=str)
    rows = table[table["id"] == name]
    row = Row(dict(rows.iloc[0]))
    ranks, nodes = row.integer("gpus"), row.integer("nodes")
    machine = machines().named(row, "gpu")
    profile = machines().joined(row, machine, "fabric", ranks // nodes)
    points = tuple(
        Point(
            collective=Collective(op),
            ranks=ranks,
            per_domain=ranks // nodes,
            payload=float(size),
            seconds=float(time) * US,
        )
        for op, size, time in zip(rows["op"], rows["bytes"], rows["time_us"], strict=True)
    )
    return Log(points=points, links=links_of(profile))


@cache
def latency_of(name: str) -> float:
    log = read_log(name)
    few = [point for point in log.points if point.payload in FITTED]
    return with_latency(few, log.links).hop_latency if few else log.links.hop_latency


@cache
def fabric_errors(name: str) -> Array:
    latency = latency_of(name)
    errors = []
    for member in FABRICS[name]:
        log = read_log(member)
        without = FITTED if member == name else ()
        errors.append(log.errors(replace(log.links, hop_latency=latency), without=without))
    return np.concatenate(errors)


def test_sane_fabrics_are_within_nine_percent_at_the_median() -> None:
    errors = np.concatenate([fabric_errors(name) for name in FABRICS])
    assert len(errors) >= 170
    assert np.median(errors) <= 0.09


def test_fabrics_that_fitted_nothing_are_within_nine_percent_too() -> None:
    errors = np.concatenate([fabric_errors(name) for name in UNSEEN])
    assert np.median(errors) <= 0.09


def test_one_latency_is_told_within_a_few_percent_by_other_small_messages() -> None:
    log = read_log("aws_p4de_a100_2n")
    few = [point for point in log.points if point.payload in FITTED]
    others = [point for point in log.points if point.payload in (32.0, 512.0, 2048.0)]
    first, second = (with_latency(points, log.links).hop_latency for points in (few, others))
    assert first == pytest.approx(second, rel=0.05)


def test_sockets_are_slower_than_any_latency_explains() -> None:
    """The library falls back to one slow stream; reported apart, not among the sane fabrics."""
    log = read_log(SOCKETS)
    few = [point for point in log.points if point.payload in FITTED]
    assert np.median(log.errors(with_latency(few, log.links), without=FITTED)) > 0.5


def test_a_fit_to_its_own_log_predicts_points_left_out(tmp_path: Path) -> None:
    """The verb on a real log: a slow fabric, which the base does not know."""
    log = read_log("aws_p4de_a100_2n")
    records = [
        Record(
            point=CollectivePoint(
                collective=point.collective, ranks=point.ranks, nodes=2, bytes=point.payload
            ),
            seconds=point.seconds,
        )
        for point in log.points
    ]
    folder = write_folder(tmp_path, records, machine=Fingerprint(backend="nccl"))
    (block,) = fit_folder(folder, base="a100-4nic").blocks
    assert block.name == "network"
    assert np.median(block.judgement.fitted) <= 0.05
    assert np.quantile(block.judgement.fitted, 0.9) <= 0.15
    assert np.median(block.judgement.default) > 0.5
