"""A picture of a topology as data: boxes with places, lines with capacities; nothing is drawn here.

A row has at most `MOST` boxes. Where it has more devices, those that are plugged into the same ones
are one box ("leaf0 x 8"); where that is not enough, neighbours are.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import cos, pi, sin

import numpy as np

from simulator.topology.facts import tier_numbers
from simulator.topology.graph import DeviceKind, FloatArray, Graph, IntArray
from simulator.topology.topology import Topology

MOST = 16
"""Boxes in a row."""
_PAIR = 2
"""Boxes that need no ring to be apart from the line between them."""
_ROUND = 0.8
"""Height of a ring of boxes over the distance of two rows."""


class BoxKind(StrEnum):
    """What a box stands for."""

    UNIT = "unit"
    ACCELERATOR = "accelerator"
    NIC = "nic"
    SWITCH = "switch"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A device, or a group of neighbours: its middle, x from 0 to 1 and y in rows from below."""

    label: str
    kind: BoxKind
    count: int
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """All cables between two boxes."""

    one: int
    other: int
    """Places of the boxes in the picture."""
    cables: int
    capacity: float
    """Bytes/s of all together, one direction (the wider one)."""
    utilisation: float | None
    """Of the fullest link, 0 to 1; None where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Boxes and lines, and what they show."""

    title: str
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def topology_pictures(
    topology: Topology, utilisation: FloatArray | None = None
) -> tuple[Picture, ...]:
    """Return the picture of the fabric, if there is one, and that of a unit with cables inside.

    `utilisation` is (links,) what a link carries over what it can, 0 to 1, or NaN where that is not
    known; the unit's picture shows the fullest of each of its links over all units.
    """
    unit = _unit_picture(topology, utilisation)
    if topology.fabric is None or topology.units == 1:
        return (unit,)
    fabric = _fabric_picture(topology, utilisation)
    return (fabric, unit) if unit.lines else (fabric,)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rows:
    """Things of a picture in rows, and which of them are one box."""

    boxes: list[Box]
    box_of: IntArray
    """(things,) the box of each."""


def _fabric_picture(topology: Topology, utilisation: FloatArray | None) -> Picture:
    fabric, graph = topology.fabric, topology.fabric.graph if topology.fabric else None
    assert fabric is not None
    assert graph is not None
    tier, first = tier_numbers(topology), topology.units
    rows = np.concatenate([np.zeros(first, dtype=np.intp), tier])
    names = [*(f"node{unit}" for unit in range(first)), *graph.devices]
    kinds = [BoxKind.UNIT] * first + [BoxKind.SWITCH] * len(tier)
    ports = np.repeat(np.arange(first), topology.port_count)
    plugs = first + fabric.attachment.ravel()
    source = np.concatenate([ports, plugs, first + graph.source])
    target = np.concatenate([plugs, ports, first + graph.target])
    used = None if utilisation is None else utilisation[topology.first_up :]
    things = _Things(names=names, kinds=kinds, rows=rows, source=source, target=target)
    placed = _placed(things)
    lines = _lines(placed, source, target, topology.capacity[topology.first_up :], used)
    title = f"{topology.title}: {topology.units} units of {topology.width} accelerators"
    return Picture(title=title, boxes=tuple(placed.boxes), lines=lines)


def _unit_picture(topology: Topology, utilisation: FloatArray | None) -> Picture:
    graph = topology.unit.graph
    kinds = [BoxKind(str(kind)) for kind in graph.kinds]
    used = None
    if utilisation is not None:
        inside = utilisation[: topology.first_up].reshape(topology.units, len(graph))
        used = np.fmax.reduce(inside, axis=0)
    placed = _placed(
        _Things(
            names=list(graph.devices),
            kinds=kinds,
            rows=_unit_rows(graph),
            source=graph.source,
            target=graph.target,
        )
    )
    capacity = topology.capacity[: len(graph)]
    lines = _lines(placed, graph.source, graph.target, capacity, used)
    title = "a unit" if topology.units > 1 else topology.title
    return Picture(title=title, boxes=tuple(placed.boxes), lines=lines)


def _unit_rows(graph: Graph) -> IntArray:
    """Return the row of each device of a unit, from below.

    NICs, sockets, PCIe switches (as many rows as they are deep), accelerators, and switches that
    lead to no socket.
    """
    hosts, nics = graph.of_kind(DeviceKind.HOST), graph.of_kind(DeviceKind.NIC)
    switches = graph.of_kind(DeviceKind.SWITCH)
    depth = np.zeros(len(graph.devices), dtype=np.intp)
    depth[hosts] = 1
    passable = np.isin(np.arange(len(graph.devices)), switches)
    level = 1
    while True:
        near = graph.target[(depth[graph.source] == level) & (depth[graph.target] == 0)]
        near = near[passable[near]]
        if not len(near):
            break
        level += 1
        depth[near] = level
    rows = np.where(depth > 0, depth, level + 2)
    rows[graph.of_kind(DeviceKind.ACCELERATOR)] = level + 1
    rows[nics] = 0
    _, dense = np.unique(rows, return_inverse=True)
    return dense.astype(np.intp)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Things:
    """Devices (or units) of a picture, and the links between them."""

    names: list[str]
    kinds: list[BoxKind]
    rows: IntArray
    """(things,) the row of each, 0 below."""
    source: IntArray
    target: IntArray


def _placed(things: _Things) -> _Rows:
    """Return the boxes of things in rows; a row with cables inside it is a ring."""
    boxes: list[Box] = []
    box_of = np.zeros(len(things.names), dtype=np.intp)
    inside = things.rows[things.source] == things.rows[things.target]
    rings = set(things.rows[things.source[inside]].tolist())
    for row in range(int(things.rows.max()) + 1):
        groups = _groups(things, np.flatnonzero(things.rows == row))
        for place, group in enumerate(groups):
            box_of[group] = len(boxes)
            x, y = _position(place, len(groups), ring=row in rings)
            name, kind, count = things.names[group[0]], things.kinds[group[0]], len(group)
            label = name if count == 1 else f"{name} x {count}"
            boxes.append(Box(label=label, kind=kind, count=count, x=x, y=row + y))
    return _Rows(boxes=boxes, box_of=box_of)


def _groups(things: _Things, members: IntArray) -> list[IntArray]:
    """Return the members of a row as at most `MOST` groups, in order."""
    from scipy.sparse import csr_array

    if len(members) <= MOST:
        return [members[[place]] for place in range(len(members))]
    count = len(things.names)
    ends = np.concatenate([things.source, things.target])
    others = np.concatenate([things.target, things.source])
    near = csr_array((np.ones(len(ends)), (ends, others)), shape=(count, count))
    alike: dict[bytes, list[int]] = {}
    for member in members.tolist():
        row = slice(near.indptr[member], near.indptr[member + 1])
        alike.setdefault(np.sort(near.indices[row]).tobytes(), []).append(member)
    classes = [np.array(group, dtype=np.intp) for group in alike.values()]
    bounds = np.array_split(np.arange(len(classes)), min(MOST, len(classes)))
    return [np.concatenate([classes[place] for place in part]) for part in bounds]


def _position(place: int, count: int, *, ring: bool) -> tuple[float, float]:
    """Return x and y of a box in its row: evenly along it, or around a ring."""
    if not ring or count <= _PAIR:
        return (place + 0.5) / count, 0.0
    angle = 2 * pi * place / count
    return (1 - cos(angle)) / 2, _ROUND / 2 * sin(angle)


def _lines(
    placed: _Rows,
    source: IntArray,
    target: IntArray,
    capacity: FloatArray,
    utilisation: FloatArray | None,
) -> tuple[Line, ...]:
    """Return one line for each pair of boxes with cables; dead links are left out."""
    count, alive = len(placed.boxes), capacity > 0
    start, end = placed.box_of[source[alive]], placed.box_of[target[alive]]
    capacity = capacity[alive]
    used = None if utilisation is None else utilisation[alive]
    key = np.minimum(start, end) * count + np.maximum(start, end)
    pairs, place = np.unique(key, return_inverse=True)
    up = np.bincount(place, capacity * (start <= end), minlength=len(pairs))
    down = np.bincount(place, capacity * (start > end), minlength=len(pairs))
    links = np.bincount(place, minlength=len(pairs))
    fullest = np.full(len(pairs), np.nan)
    if used is not None:
        np.fmax.at(fullest, place, used)
    return tuple(
        Line(
            one=int(pair) // count,
            other=int(pair) % count,
            cables=(int(links[number]) + 1) // 2,
            capacity=float(max(up[number], down[number])),
            utilisation=None if np.isnan(fullest[number]) else float(fullest[number]),
        )
        for number, pair in enumerate(pairs)
        if pair // count != pair % count
    )
