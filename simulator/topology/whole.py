"""All devices of a topology numbered through, and the two ends of each of its links."""

from __future__ import annotations

import numpy as np

from simulator.topology.graph import DeviceKind, IntArray
from simulator.topology.topology import Topology


def device_count(topology: Topology) -> int:
    """Return how many devices there are: those of unit 0, of unit 1, ..., then the fabric's."""
    fabric = topology.fabric
    return _fabric_start(topology) + (0 if fabric is None else len(fabric.graph.devices))


def device_name(topology: Topology, device: int) -> str:
    """Return how a report names a device: "node3/gpu1", "leaf0"."""
    if device < _fabric_start(topology):
        unit, inside = divmod(device, len(topology.unit.graph.devices))
        return f"node{unit}/{topology.unit.graph.devices[inside]}"
    assert topology.fabric is not None
    return topology.fabric.graph.devices[device - _fabric_start(topology)]


def device_kind(topology: Topology, device: int) -> DeviceKind:
    """Return what a device is."""
    if device < _fabric_start(topology):
        return topology.unit.graph.kinds[device % len(topology.unit.graph.devices)]
    assert topology.fabric is not None
    return topology.fabric.graph.kinds[device - _fabric_start(topology)]


def in_units(topology: Topology, devices: IntArray) -> IntArray:
    """Return the numbers of some devices of a unit in every unit, `(units, devices)`."""
    starts = np.arange(topology.units) * len(topology.unit.graph.devices)
    return starts[:, None] + devices[None, :]


def link_ends(topology: Topology) -> tuple[IntArray, IntArray]:
    """Return the devices at which each link begins and ends, `(links,)` both."""
    graph = topology.unit.graph
    sources = [in_units(topology, graph.source).ravel()]
    targets = [in_units(topology, graph.target).ravel()]
    if topology.fabric is not None:
        start, fabric = _fabric_start(topology), topology.fabric
        ports = in_units(topology, topology.unit.ports).ravel()
        plugs = start + fabric.attachment.ravel()
        sources += [ports, plugs, start + fabric.graph.source]
        targets += [plugs, ports, start + fabric.graph.target]
    else:
        # Ports that are plugged into nothing: their links exist by number and carry nothing.
        ports = in_units(topology, topology.unit.ports).ravel()
        sources += [ports, ports]
        targets += [ports, ports]
    return np.concatenate(sources), np.concatenate(targets)


def _fabric_start(topology: Topology) -> int:
    return topology.units * len(topology.unit.graph.devices)
