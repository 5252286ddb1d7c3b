"""Collectives among accelerators that are joined directly: over all their links at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from simulator.topology.graph import FloatArray, IntArray
from simulator.topology.topology import Unit

MOST_SEARCHED = 8
"""Members of a group up to which all rings are enumerated: at most 7! of them."""
_OUTSIDE = -1


def mesh_loads(unit: Unit, bandwidth: FloatArray, members: IntArray) -> FloatArray | None:
    """Return (links of the unit,) the bytes on each for each wire byte of a rank of a group.

    `members` are accelerators of the unit by their place in it. None where the group cannot do
    with direct links.
    """
    graph = unit.graph
    place = np.full(len(graph.devices), _OUTSIDE, dtype=np.intp)
    place[unit.accelerators[members]] = np.arange(len(members))
    one, other = place[graph.source], place[graph.target]
    direct = np.flatnonzero((one != _OUTSIDE) & (other != _OUTSIDE) & (bandwidth > 0))
    one, other = one[direct], other[direct]
    width = np.zeros((len(members), len(members)))
    np.add.at(width, (one, other), bandwidth[direct])
    weights = ring_weights(width)
    if weights is None:
        return None
    loads = np.zeros(len(graph))
    loads[direct] = weights[one, other] * bandwidth[direct] / width[one, other]
    return loads


def ring_weights(width: FloatArray) -> FloatArray | None:
    """Return (members, members) the bytes on direct links for each wire byte of a rank.

    `width` are the bytes/s of the links between the members. A collective is divided over rings
    that go through all members along direct links, so much on each that together they are as fast
    as the links allow, as NCCL and RCCL search their channels. Every member sends one byte and
    receives one. Where members are alike (hybrid cube mesh of 8, xGMI of 2 to 8) all links fill,
    and a member's bytes are spread in proportion to the bandwidth of its links. Of more than
    `MOST_SEARCHED` members that is taken for granted: it is what no rings can exceed.

    Returns None where no ring exists, so that some bytes must be forwarded.

    >>> triangle = np.ones((3, 3)) - np.eye(3)
    >>> ring_weights(triangle).tolist()
    [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
    """
    from scipy.optimize import linprog
    from scipy.sparse.csgraph import connected_components

    members = len(width)
    if members > MOST_SEARCHED:
        whole = connected_components(width > 0, directed=True, connection="strong")[0] == 1
        return width / width.sum(axis=1, keepdims=True) if whole else None
    if not (width > 0).any(axis=1).all():
        return None
    rings = np.array(list(_rings(width > 0, [0])), dtype=np.intp).reshape(-1, members)
    if not len(rings):
        return None
    link = rings * members + np.roll(rings, -1, axis=1)
    uses = np.zeros((members * members, len(rings)))
    uses[link.T, np.arange(len(rings))] = 1.0
    laid = np.flatnonzero(width.ravel() > 0)
    room = width.ravel()[laid] / width.max()
    best = linprog(-np.ones(len(rings)), A_ub=uses[laid], b_ub=room, method="highs")
    assert best.success, best.message
    speeds = np.asarray(best.x)
    weights: FloatArray = (uses @ speeds / speeds.sum()).reshape(members, members)
    return weights


def _rings(joined: np.ndarray, way: list[int]) -> Iterator[list[int]]:
    """Yield all orders of all members, from 0 on, in which each is joined to the next one."""
    if len(way) == len(joined):
        if joined[way[-1], way[0]]:
            yield way
        return
    for following in np.flatnonzero(joined[way[-1]]):
        if following not in way:
            yield from _rings(joined, [*way, int(following)])
