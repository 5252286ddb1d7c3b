"""Published collectives over growing numbers of nodes of one fabric: series to extrapolate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from calibrate.collective_points import Point
from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.machines import Machines
from simulator.hardware.profile import Profile, load_profile
from simulator.parallel.groups import Collective
from simulator.units import US

LOGS, FIGURE = "collectives/nccl_logs/parsed.csv", "collectives/nccl_scaling_digitised.csv"
_FIGURE_MACHINE = "dgx-h100"
"""Of the figure; its table names no machine. Source: NVIDIA GTC 2024, all-reduce of H100 systems of
8 GPUs with 8 x 400 Gb/s InfiniBand."""
_SAME_FABRIC = ["gpu", "fabric", "op"]
FEW = 4
"""Nodes at most that a fit sees, fewer where a series ends there."""
_ACROSS = 2
"""Nodes from which a collective uses the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One collective on one fabric, over two numbers of nodes or more."""

    name: str
    machine: Profile
    points: tuple[Point, ...]

    @property
    def nodes(self) -> tuple[int, ...]:
        """Numbers of nodes, rising."""
        return tuple(sorted({point.group.domains for point in self.points}))

    def up_to(self, nodes: int) -> tuple[Point, ...]:
        """Return the points of so many nodes or fewer."""
        return tuple(point for point in self.points if point.group.domains <= nodes)

    def beyond(self, nodes: int) -> tuple[Point, ...]:
        """Return the points of more nodes."""
        return tuple(point for point in self.points if point.group.domains > nodes)


def read_series(folder: Path) -> tuple[Series, ...]:
    """Return the series of a folder of published measurements: logs by fabric, and the figure.

    Logs of the machine that the figure shows are carried on by it: few nodes of one cluster, more
    of another. Logs of one number of nodes, and those of machines that no profile describes, make
    no series.
    """
    logs = [series for series in _of_logs(folder / LOGS) if len(series.nodes) > 1]
    figure = _of_figure(folder / FIGURE)
    carried = [_carried_on(log, figure) for log in logs if _alike(log, figure)]
    return (*logs, figure, *carried)


def _alike(log: Series, figure: Series) -> bool:
    one, other = log.points[0], figure.points[0]
    same = one.collective is other.collective and one.per_domain == other.per_domain
    return same and log.machine.name == figure.machine.name


def _carried_on(log: Series, figure: Series) -> Series:
    points = (*log.up_to(FEW), *figure.beyond(FEW))
    return Series(name=f"{log.name}, then {figure.name}", machine=log.machine, points=points)


def _of_logs(path: Path) -> Iterator[Series]:
    table = pd.read_csv(path, dtype=str)
    machines = Machines(None)
    for (gpu, fabric, op), rows in table.groupby(_SAME_FABRIC, sort=False):
        across = rows[rows["nodes"].astype(int) >= _ACROSS]
        machine = _machine(across, machines)
        if machine is not None and op in list(Collective):
            yield Series(name=f"{gpu}, {fabric}", machine=machine, points=_points(across, str(op)))


def _machine(rows: pd.DataFrame, machines: Machines) -> Profile | None:
    """Return the machine that the first row names, with the network that it names."""
    if rows.empty:
        return None
    row = Row(dict(rows.iloc[0]))
    try:
        profile = machines.named(row, "gpu")
        return machines.joined(row, profile, "fabric", row.integer("gpus") // row.integer("nodes"))
    except SkippedRowError:
        return None


def _of_figure(path: Path) -> Series:
    machine, table = load_profile(_FIGURE_MACHINE), pd.read_csv(path)
    gpus = table["gpus"].astype(int)
    rows = table.assign(nodes=gpus // machine.node.accelerators)
    points = _points(rows, Collective.ALL_REDUCE.value)
    return Series(name="GTC 2024 figure", machine=machine, points=points)


def _points(rows: pd.DataFrame, op: str) -> tuple[Point, ...]:
    cells = zip(rows["gpus"], rows["nodes"], rows["bytes"], rows["time_us"], strict=True)
    return tuple(
        Point(
            collective=Collective(op),
            ranks=int(ranks),
            per_domain=int(ranks) // int(nodes),
            payload=float(payload),
            seconds=float(time) * US,
        )
        for ranks, nodes, payload, time in cells
    )
