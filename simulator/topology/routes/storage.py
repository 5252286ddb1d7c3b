"""Bytes between units and storage that is plugged into switches of the fabric."""

from __future__ import annotations

from fnmatch import fnmatchcase

import numpy as np

from simulator.topology.graph import FloatArray, Graph, IntArray
from simulator.topology.routes.fabric import Between, fabric_routes
from simulator.topology.routes.spreading import Spreading
from simulator.topology.topology import Fabric, Topology


def storage_loads(
    topology: Topology,
    switches: IntArray,
    *,
    writes: bool,
    spreading: Spreading = Spreading.IDEAL,
    seed: int = 0,
) -> FloatArray:
    """Return (links,) the bytes on each link when every unit writes, or reads, one byte.

    A unit's byte is divided over its ports in proportion to their bandwidth, and from each port
    evenly over those of the `switches` that it reaches. Inside a unit it loads nothing: storage
    goes through host memory. Units without a port that reaches any load nothing either.
    """
    fabric = topology.fabric
    assert fabric is not None, "one unit has no fabric to reach storage over"
    first = topology.first_up if writes else topology.first_down
    ports = topology.capacity[first : first + fabric.attachment.size]
    ports = ports.reshape(fabric.attachment.shape)
    routes = fabric_routes(
        fabric, topology.capacity[topology.first_fabric :], spreading, seed, apart=switches
    )
    reached = routes.part[switches][:, None] == routes.part[None, :]
    ports = np.where(reached.any(axis=0)[fabric.attachment], ports, 0.0)
    whole = ports.sum(axis=1, keepdims=True)
    share = np.divide(ports, whole, out=np.zeros_like(ports), where=whole > 0)
    loads = np.zeros(topology.links)
    loads[first : first + share.size] = share.ravel()
    near, far, weight = _pairs(fabric, switches, reached, share)
    loads[topology.first_fabric :] = routes.carried(
        Between(
            start=near if writes else far,
            end=far if writes else near,
            weight=weight,
            pair=near * len(fabric.graph.devices) + far,
        )
    )
    return loads


def storage_switches(fabric: Fabric, pattern: str | None) -> IntArray:
    """Return the switches whose names match a pattern; of None those farthest from the units.

    In a tree the farthest are its top; in a torus or dragonfly, whose switches all have ports, all.
    """
    names = fabric.graph.devices
    if pattern is not None:
        return np.array([i for i, name in enumerate(names) if fnmatchcase(name, pattern)], np.intp)
    far = _hops(fabric.graph, np.unique(fabric.attachment))
    return np.flatnonzero(far == far[np.isfinite(far)].max())


def _pairs(
    fabric: Fabric, switches: IntArray, reached: np.ndarray, share: FloatArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return switches with ports, switches with storage, and the bytes between the two."""
    held = np.bincount(fabric.attachment.ravel(), share.ravel(), len(fabric.graph.devices))
    near = np.flatnonzero(held)
    place, column = np.nonzero(reached[:, near])
    weight = (held[near] / reached[:, near].sum(axis=0))[column]
    return near[column], switches[place], weight


def _hops(graph: Graph, starts: IntArray) -> FloatArray:
    """Return (devices,) links from the nearest of `starts`; infinite where none leads."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    count = len(graph.devices)
    matrix = coo_array((np.ones(len(graph)), (graph.source, graph.target)), shape=(count, count))
    found: FloatArray = dijkstra(matrix.tocsr(), indices=starts, unweighted=True, min_only=True)
    return found
