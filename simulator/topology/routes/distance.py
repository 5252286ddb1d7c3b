"""How many links each device is from each of many targets, by one sweep for all of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simulator.topology.graph import IntArray
from simulator.topology.routes.arcs import Arcs, Flow

UNREACHED = -1
_WORD = 64
"""Targets that one machine word stands for."""


def hop_distance(arcs: Arcs, targets: IntArray, asked: Flow) -> NDArray[np.int32]:
    """Return (devices, targets) hops from each device to each target; `UNREACHED` where none.

    A sweep goes out from all targets at once: each device has a bit for each target, and takes in
    a level the bits of the devices that its arcs lead to. It ends when the distances of the `asked`
    bytes are known, so that devices farther away than any of them stay `UNREACHED`.
    """
    count = len(targets)
    bits = np.zeros((arcs.devices, -(-count // _WORD) * _WORD), dtype=np.bool_)
    bits[targets, np.arange(count)] = True
    distance = np.full((arcs.devices, count), UNREACHED, dtype=np.int32)
    distance[targets, np.arange(count)] = 0
    edge = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    reached = edge.copy()
    begins = np.flatnonzero(np.diff(arcs.first))
    level = 0
    while (distance[asked.place, asked.column] == UNREACHED).any() and edge.any():
        level += 1
        found = np.bitwise_or.reduceat(edge[arcs.target], arcs.first[begins], axis=0)
        edge = np.zeros_like(reached)
        edge[begins] = found & ~reached[begins]
        reached |= edge
        new = np.flatnonzero(edge.any(axis=1))
        marks = np.unpackbits(edge[new].view(np.uint8), axis=1, count=count, bitorder="little")
        row, column = np.nonzero(marks)
        distance[new[row], column] = level
    return distance
