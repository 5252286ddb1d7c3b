"""Accelerators that are joined directly: NVLink or xGMI without a switch."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import numpy as np
from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord
from simulator.topology.context import Context, known
from simulator.topology.graph import Cable, DeviceKind, make_graph
from simulator.topology.topology import Unit
from simulator.topology.units.cards import Card, cards
from simulator.units import Bandwidth, Seconds

Links = Annotated[int, Field(ge=0, le=64)]
Matrix = tuple[tuple[int, ...], ...]


class Preset(StrEnum):
    """A mesh that has a name."""

    ALL_TO_ALL = "all-to-all"
    """One link between each two: MI300X, four GH200."""
    HYBRID_CUBE_MESH = "hybrid-cube-mesh"
    """DGX-1 with V100: eight accelerators with six links each, one or two to four others."""


HYBRID_CUBE_MESH: Matrix = (
    (0, 1, 1, 2, 2, 0, 0, 0),
    (1, 0, 2, 1, 0, 2, 0, 0),
    (1, 2, 0, 2, 0, 0, 1, 0),
    (2, 1, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 1, 1, 2),
    (0, 2, 0, 0, 1, 0, 2, 1),
    (0, 0, 1, 0, 1, 2, 0, 2),
    (0, 0, 0, 1, 2, 1, 2, 0),
)
"""Links of each pair of a DGX-1V."""


class MeshFile(FileRecord):
    """Accelerators joined by direct links, some pairs by several, others by none.

    Pairs without a link reach each other over a neighbour that forwards.
    """

    accelerators: int | None = Field(default=None, ge=1, le=1024)
    """Of one unit; left out, those of the profile's scale-up domain."""
    links: Preset | tuple[tuple[Links, ...], ...] = Preset.ALL_TO_ALL
    """Links of each pair: a name, or a row for each accelerator."""
    link_bandwidth: Bandwidth | None = None
    """One link, one direction; left out, the profile's bandwidth of an accelerator over the links
    of the one that has most."""
    latency: Seconds | None = None
    """Accelerator to neighbour; left out, the profile's."""
    pcie_bandwidth: Bandwidth | None = None
    """Accelerator to its NIC, one direction; left out, the profile's from host to accelerator."""
    affinity: tuple[Card, ...] | None = None
    """NIC of each accelerator of a node, from 0; left out, in order, as evenly as it goes."""


def mesh(file: MeshFile, context: Context) -> Unit:
    """Return accelerators with one cable for each pair that has links, as wide as these together.

    Raises:
        InputError: the rows of `links` are no symmetric matrix of that size.
    """
    size = known(file.accelerators, context.domain, "unit.accelerators")
    links = _links(file.links, size)
    names = [f"gpu{place}" for place in range(size)]
    nics = cards(size, file.affinity, context)
    cables = _cables(file, links, names, context)
    if nics.names:
        pcie = known(file.pcie_bandwidth, context.host_bandwidth, "unit.pcie_bandwidth")
        cables += nics.cables(names, pcie)
    accelerators = [(name, DeviceKind.ACCELERATOR) for name in names]
    return Unit(
        graph=make_graph([*accelerators, *nics.devices], cables),
        accelerators=np.arange(size),
        ports=nics.places(size),
        affinity=np.array(nics.affinity, dtype=np.intp),
        port_bandwidth=nics.bandwidth(context),
    )


def _cables(file: MeshFile, links: Matrix, names: list[str], context: Context) -> list[Cable]:
    if len(names) == 1:
        return []
    share = context.scale_up_bandwidth
    if share is not None:
        share /= max(1, *(sum(row) for row in links))
    each = known(file.link_bandwidth, share, "unit.link_bandwidth")
    hop = known(file.latency, context.scale_up_latency, "unit.latency")
    return [
        Cable(one=names[i], other=names[j], bandwidth=each * count, latency=hop)
        for i, row in enumerate(links)
        for j, count in enumerate(row)
        if i < j and count
    ]


def _links(given: Preset | Matrix, size: int) -> Matrix:
    if given is Preset.ALL_TO_ALL:
        return tuple(tuple(int(i != j) for j in range(size)) for i in range(size))
    matrix = HYBRID_CUBE_MESH if given is Preset.HYBRID_CUBE_MESH else tuple(given)
    problems = _matrix_problems(matrix, size)
    if problems:
        raise InputError(*problems)
    return matrix


def _matrix_problems(matrix: Matrix, size: int) -> list[Problem]:
    """Return what keeps a matrix from being the links of each pair of `size` accelerators."""
    rows = [
        Problem(
            key=f"unit.links[{i}]",
            found=f"{len(row)} entries",
            rule=f"a row has one entry for each of the {len(matrix)} rows",
            fix="write 0 where two have no link",
        )
        for i, row in enumerate(matrix)
        if len(row) != len(matrix)
    ]
    if len(matrix) != size:
        rows.append(
            Problem(
                key="unit.links",
                found=f"{len(matrix)} rows",
                rule=f"a unit has {size} accelerators, and each has a row",
                fix=f"set accelerators = {len(matrix)}, or give {size} rows",
            )
        )
    return rows or [
        Problem(
            key=f"unit.links[{i}][{j}]",
            found=f"{count}, and {matrix[j][i]} at [{j}][{i}]",
            rule="must be the same from both ends, and 0 from an accelerator to itself",
            fix="0" if i == j else f"write {max(count, matrix[j][i])} at both",
        )
        for i, row in enumerate(matrix)
        for j, count in enumerate(row)
        if (count != matrix[j][i] and i < j) or (i == j and count)
    ]
