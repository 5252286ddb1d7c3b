"""How much one half of a cluster can send to the other half: a maximum flow."""

from __future__ import annotations

import numpy as np

from simulator.topology.graph import FloatArray, IntArray
from simulator.topology.topology import Topology

_STEPS = 2**30
"""Steps into which a bandwidth is divided, since the flow is in whole numbers of 32 bits."""


def half_bandwidth(topology: Topology) -> float:
    """Return bytes/s that the first half of the units can send to the others, all links used.

    Of one unit, the first half of its accelerators to the others; 0 where there is only one. It is
    the bisection bandwidth where units are numbered along the fabric, leaf by leaf, as all kinds
    of fabric here number them; no routing gives more. To one part in a million.
    """
    if topology.units > 1:
        return _between_units(topology)
    return _inside(topology) if topology.width > 1 else 0.0


def _between_units(topology: Topology) -> float:
    fabric, half = topology.fabric, topology.units // 2
    assert fabric is not None, "several units are joined"
    count = len(fabric.graph.devices)
    ports = topology.capacity[topology.first_up : topology.first_down]
    ports = ports.reshape(fabric.attachment.shape)
    near, far = np.zeros(count), np.zeros(count)
    np.add.at(near, fabric.attachment[:half].ravel(), ports[:half].ravel())
    np.add.at(far, fabric.attachment[half:].ravel(), ports[half:].ravel())
    capacity = topology.capacity[topology.first_fabric :]
    return _flow(near, far, fabric.graph.source, fabric.graph.target, capacity)


def _inside(topology: Topology) -> float:
    graph, first = topology.unit.graph, topology.unit.accelerators
    half, count = topology.width // 2, len(graph.devices)
    capacity = topology.capacity[: len(graph)]
    out = np.bincount(graph.source, capacity, minlength=count)
    back = np.bincount(graph.target, capacity, minlength=count)
    near, far = np.zeros(count), np.zeros(count)
    near[first[:half]], far[first[half:]] = out[first[:half]], back[first[half:]]
    return _flow(near, far, graph.source, graph.target, capacity)


def _flow(
    near: FloatArray, far: FloatArray, source: IntArray, target: IntArray, capacity: FloatArray
) -> float:
    """Return the most that flows from devices that take in `near` to those that let out `far`."""
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import maximum_flow

    count, most = len(near), float(min(near.sum(), far.sum()))
    if most <= 0:
        return 0.0
    devices = np.arange(count)
    starts = np.concatenate([np.full(count, count), devices, source])
    ends = np.concatenate([devices, np.full(count, count + 1), target])
    widths = np.minimum(np.concatenate([near, far, capacity]), most)
    joined = csr_array(coo_array((widths, (starts, ends)), shape=(count + 2, count + 2)))
    joined.data = np.rint(np.minimum(joined.data, most) / most * _STEPS)
    flow = maximum_flow(csr_array(joined.astype(np.int32)), count, count + 1)
    return float(flow.flow_value) / _STEPS * most
