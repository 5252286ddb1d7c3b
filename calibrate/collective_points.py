"""Measured collectives as points: reading of a table, and the share left out of a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from simulator.errors import InputError, Problem
from simulator.parallel.groups import Collective, GroupShape
from simulator.units import US

COLUMNS = ("gpu", "op", "dtype", "gpus", "nodes", "bytes", "time_us")
HELD_OUT = 0.2
REDUCTIONS = (Collective.ALL_REDUCE, Collective.REDUCE_SCATTER, Collective.REDUCE)
INTEGERS = ("int", "uint")
"""Beginnings of the names of number formats that training adds none of, and no switch does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measured cell: the median over data types and repeats."""

    collective: Collective
    ranks: int
    payload: float
    seconds: float
    per_domain: int = 0
    """Ranks in each scale-up domain; 0 is all of them."""

    @property
    def group(self) -> GroupShape:
        """The group that was measured."""
        return GroupShape(size=self.ranks, per_domain=self.per_domain or self.ranks)


def read_points(table: pd.DataFrame) -> tuple[Point, ...]:
    """Return the single-node cells of a table with `COLUMNS`, sorted.

    Reductions of integers are left out: training has none, and no switch does them.

    Raises:
        InputError: a column is missing, more than one accelerator, or no row of one node.
    """
    missing = [column for column in COLUMNS if column not in table.columns]
    if missing:
        rule = "a table of collectives needs the columns " + ", ".join(COLUMNS)
        raise InputError(Problem(where="table", rule=rule, found="no " + ", ".join(missing)))
    rows = table[(table["nodes"] == 1) & (table["gpus"] > 1) & (table["time_us"] > 0)]
    integer = rows["dtype"].astype(str).str.startswith(INTEGERS)
    rows = rows[~(integer & rows["op"].isin(REDUCTIONS))]
    gpus = sorted(set(rows["gpu"]))
    if len(gpus) != 1:
        rule = "rows of one node of one kind of accelerator are needed"
        found = ", ".join(map(str, gpus)) or "no row"
        raise InputError(Problem(where="table", key="gpu", rule=rule, found=found))
    cells = rows.groupby(["op", "gpus", "bytes"], as_index=False)["time_us"].median()
    return tuple(
        Point(
            collective=Collective(str(op)),
            ranks=int(ranks),
            payload=float(payload),
            seconds=float(time) * US,
        )
        for op, ranks, payload, time in zip(
            cells["op"], cells["gpus"], cells["bytes"], cells["time_us"], strict=True
        )
    )


def adds_integers(collective: Collective, dtype: str) -> bool:
    """Return whether a collective adds up integers, which no training step does."""
    return collective in REDUCTIONS and dtype.lower().startswith(INTEGERS)


def split(points: Sequence[Point], seed: int) -> tuple[tuple[Point, ...], tuple[Point, ...]]:
    """Return the points to fit and a random `HELD_OUT` share of them to judge."""
    order = np.random.default_rng(seed).permutation(len(points))
    count = round(HELD_OUT * len(points))
    left_out = set(order[:count].tolist())
    kept = tuple(point for index, point in enumerate(points) if index not in left_out)
    return kept, tuple(points[index] for index in sorted(left_out))
