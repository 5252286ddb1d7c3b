"""Units as routes see them: those that are alike share routes inside and the choice of ports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from simulator.topology.graph import IntArray
from simulator.topology.routes.inside import Inside, inside_routes
from simulator.topology.routes.ports import NO_PORT, Choice, Side, choose_ports, own_ports
from simulator.topology.topology import Fabric, Topology


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """The kinds of unit that a topology has, and which kind each unit is."""

    insides: tuple[Inside, ...]
    """Routes of a sound unit first, then of each that has changed links."""
    inside_of: IntArray
    """(units,) number in `insides`."""
    sides: tuple[Side, ...]
    """Empty where no fabric is."""
    side_of: IntArray
    """(units,) number in `sides`."""
    own: tuple[IntArray, ...]
    """(accelerators,) the ports that each uses by itself."""
    choice: Callable[[int, int], Choice]
    """Ports from a unit of one side to a unit of another; looked for once."""


def units_of(topology: Topology, part: IntArray, *, relay: bool) -> Units:
    """Return the kinds of unit; `part` is the part of the fabric that each of its devices is in."""
    insides, inside_of = _insides(topology)
    sides, side_of = _sides(topology, part, insides, inside_of)
    own = own_ports(topology.unit, insides[0])
    return Units(
        insides=insides,
        inside_of=inside_of,
        sides=sides,
        side_of=side_of,
        own=tuple(own),
        choice=cache(lambda one, other: choose_ports(sides[one], sides[other], own, relay=relay)),
    )


def _insides(topology: Topology) -> tuple[tuple[Inside, ...], IntArray]:
    links = len(topology.unit.graph)
    changes: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    for link, rate in topology.changed:
        if link < topology.first_up:
            changes[link // links].append((link % links, rate))
    kinds: dict[tuple[tuple[int, float], ...], int] = {(): 0}
    inside_of = np.zeros(topology.units, dtype=np.intp)
    for unit, rates in changes.items():
        inside_of[unit] = kinds.setdefault(tuple(rates), len(kinds))
    insides = []
    for kind in kinds:
        bandwidth = topology.unit.graph.bandwidth.copy()
        for link, changed in kind:
            bandwidth[link] = changed
        insides.append(inside_routes(topology.unit, bandwidth))
    return tuple(insides), inside_of


def _sides(
    topology: Topology, part: IntArray, insides: tuple[Inside, ...], inside_of: IntArray
) -> tuple[tuple[Side, ...], IntArray]:
    if topology.fabric is None:
        return (), np.zeros(topology.units, dtype=np.intp)
    shape = topology.units, topology.port_count
    capacity = topology.capacity
    plugged = part[topology.fabric.attachment]
    up = capacity[topology.first_up : topology.first_down].reshape(shape) > 0
    down = capacity[topology.first_down : topology.first_fabric].reshape(shape) > 0
    columns = [
        inside_of[:, None],
        _rails(topology.fabric),
        np.where(up, plugged, NO_PORT),
        np.where(down, plugged, NO_PORT),
    ]
    rows, side_of = np.unique(np.concatenate(columns, axis=1), axis=0, return_inverse=True)
    ends = np.cumsum([1, shape[1], shape[1]])
    sides = []
    for row in rows:
        kind, rail, sends, receives = np.split(row, ends)
        sides.append(Side(inside=insides[int(kind[0])], rail=rail, up=sends, down=receives))
    return tuple(sides), side_of


def _rails(fabric: Fabric) -> IntArray:
    """Return (units, ports) the first port of the unit on the same switch: the name of its rail."""
    plugs = fabric.attachment
    rails: IntArray = np.argmax(plugs[:, :, None] == plugs[:, None, :], axis=2)
    return rails
