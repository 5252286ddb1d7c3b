"""Sixty points of a machine's collectives predict the rest of its table.

Fitted are all-reduce, all-gather and all-to-all at 2 ranks and all, payloads of 1 KiB to 256 MiB
x4; judged are all other cells of these collectives: other payloads, and 4 ranks where 8 are all.
The base is the shipped profile of another accelerator, which has not seen the table.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from calibrate.collective_points import Point, read_points
from calibrate.fit_collectives import log_errors
from calibrate.fit_domain import fit_domain
from calibrate.fit_priors import KNOWN
from calibrate.fit_shipped_collectives import (
    FITTED_FOLDER,
    SHIPPED,
    TABLE,
    links_before,
    read_block,
)
from calibrate.log_fit import Array
from simulator.cost.collectives.request import Links
from simulator.parallel.groups import Collective
from simulator.units import KIB
from tests.data import data_folder, needs_data

pytestmark = needs_data

OPS = (Collective.ALL_REDUCE, Collective.ALL_GATHER, Collective.ALL_TO_ALL)
PAYLOADS = frozenset(KIB * 4**power for power in range(10))
BASES = {
    "a100_sxm": "h100_sxm",
    "h100_sxm": "a100_sxm",
    "b200_sxm": "h100_sxm",
    "gb200": "h100_sxm",
}
"""Table -> constants of another accelerator that the fit starts from. All have NVLink."""
TABLES = (
    ("a100_sxm", "2.27.3"),
    ("h100_sxm", "2.27.3"),
    ("h100_sxm", "2.29.2"),
    ("b200_sxm", "2.27.3"),
    ("b200_sxm", "2.27.5"),
    ("b200_sxm", "2.28.9"),
    ("b200_sxm", "2.29.2"),
    ("gb200", "2.29.2"),
)


@cache
def points_of(gpu: str, release: str) -> tuple[Point, ...]:
    table = pd.read_csv(data_folder() / TABLE)
    return read_points(table[(table["gpu"] == gpu) & (table["nccl_version"] == release)])


def sixty(points: tuple[Point, ...]) -> tuple[list[Point], list[Point]]:
    """Return the points to fit, and the others of the same collectives."""
    sizes = (2, max(point.ranks for point in points))
    own = [point for point in points if point.collective in OPS]
    chosen = [point for point in own if point.ranks in sizes and point.payload in PAYLOADS]
    return chosen, [point for point in own if point not in chosen]


def links_of_table(gpu: str) -> Links:
    shipped = next(each for each in SHIPPED if each.gpu == gpu)
    constants = read_block(FITTED_FOLDER / f"{BASES[gpu]}.toml")
    return replace(links_before(shipped), constants=constants)


def errors(points: list[Point], links: Links) -> Array:
    return np.asarray(abs(np.expm1(log_errors(points, links))))


@pytest.mark.parametrize(("gpu", "release"), TABLES, ids=lambda word: word)
def test_sixty_points_predict_the_rest_of_the_table(gpu: str, release: str) -> None:
    fitted, rest = sixty(points_of(gpu, release))
    assert len(fitted) == 60
    links, _ = fit_domain(fitted, links_of_table(gpu), KNOWN)
    found = errors(rest, links)
    assert np.median(found) <= 0.06
    assert np.quantile(found, 0.9) <= 0.16


def test_the_base_alone_does_not() -> None:
    _, rest = sixty(points_of("h100_sxm", "2.29.2"))
    assert np.quantile(errors(rest, links_of_table("h100_sxm")), 0.9) > 0.16


def test_reduce_scatter_follows_from_all_gather() -> None:
    points = points_of("h100_sxm", "2.29.2")
    links, _ = fit_domain(sixty(points)[0], links_of_table("h100_sxm"), KNOWN)
    scatter = [point for point in points if point.collective is Collective.REDUCE_SCATTER]
    assert np.median(errors(scatter, links)) <= 0.08


def test_a_second_fit_finds_the_same() -> None:
    fitted, _ = sixty(points_of("gb200", "2.29.2"))
    once, again = (fit_domain(fitted, links_of_table("gb200"), KNOWN) for _ in range(2))
    assert once == again
