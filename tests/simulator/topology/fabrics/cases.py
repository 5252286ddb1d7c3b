"""Units that are all ports, and oracles of what a fabric joins: reach, hops, cuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra, maximum_flow

from simulator.errors import InputError, Problem
from simulator.files import parse_record
from simulator.topology.context import Context
from simulator.topology.graph import DeviceKind, make_graph
from simulator.topology.registry import FABRICS
from simulator.topology.topology import Fabric, Unit

GB = 1e9
NIC = 50 * GB
"""Bytes/s of a NIC and of every cable, where a test says nothing else."""
CONTEXT = Context(nic_bandwidth=NIC, nic_latency=4e-6)


def nics(ports: int) -> Unit:
    """Return a unit that is nothing but NICs."""
    devices = [(f"nic{port}", DeviceKind.NIC) for port in range(ports)]
    nothing = np.zeros(0, dtype=np.intp)
    return Unit(
        graph=make_graph(devices, []),
        accelerators=nothing,
        ports=np.arange(ports),
        affinity=nothing,
    )


def chips(ports: int) -> Unit:
    """Return a unit of accelerators that are plugged in themselves, at 600 GB/s."""
    devices = [(f"chip{port}", DeviceKind.ACCELERATOR) for port in range(ports)]
    own = np.arange(ports)
    return Unit(
        graph=make_graph(devices, []),
        accelerators=own,
        ports=own,
        affinity=own,
        port_bandwidth=np.full(ports, 600 * GB),
        port_latency=np.zeros(ports),
    )


def fabric(
    kind: str, units: int, ports: int | Unit, context: Context = CONTEXT, /, **keys: Any
) -> Fabric:
    """Return the fabric of a table with `kind` and `keys` over units of so many NICs."""
    unit = nics(ports) if isinstance(ports, int) else ports
    parameters = parse_record(FABRICS[kind].file, keys, "net.toml")
    return FABRICS[kind].build(parameters, units, unit, context)


def refused(kind: str, units: int, ports: int | Unit, /, **keys: Any) -> tuple[Problem, ...]:
    """Return what is wrong with a table."""
    with pytest.raises(InputError) as caught:
        fabric(kind, units, ports, **keys)
    return caught.value.problems


def tiers(*given: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tiers of a tree, from the leaves up."""
    return list(given)


def cables(built: Fabric) -> int:
    """Return the cables between switches: two links each."""
    return len(built.graph) // 2


def uplinks_of(built: Fabric, name: str) -> list[str]:
    """Return the other ends of a switch's cables, in their order."""
    graph = built.graph
    here = np.flatnonzero(graph.source == graph.number[name])
    return [graph.devices[device] for device in graph.target[here]]


def islands(built: Fabric) -> int:
    """Return into how many parts ports fall that cannot reach each other through switches."""
    count = len(built.graph.devices)
    edges = (np.ones(len(built.graph)), (built.graph.source, built.graph.target))
    _, island = connected_components(coo_array(edges, shape=(count, count)), connection="strong")
    return len(set(island[built.attachment[built.port_bandwidth > 0]].tolist()))


def diameter(built: Fabric) -> int:
    """Return the links between switches on the longest of all shortest ways between ports."""
    count = len(built.graph.devices)
    edges = (np.ones(len(built.graph)), (built.graph.source, built.graph.target))
    plugged = np.unique(built.attachment)
    graph = coo_array(edges, shape=(count, count)).tocsr()
    return int(dijkstra(graph, unweighted=True, indices=plugged)[:, plugged].max())


def cut(built: Fabric, one: Sequence[int], other: Sequence[int], unit: float = GB) -> float:
    """Return bytes/s from some units to others at most, by maximum flow, in whole `unit`s.

    The oracle of bisection bandwidth: the smallest cut that parts them.
    """
    graph = built.graph
    count = len(graph.devices)
    start, end = count, count + 1
    into, out = built.attachment[list(one)].ravel(), built.attachment[list(other)].ravel()
    source = np.concatenate([graph.source, np.full(into.size, start), out])
    target = np.concatenate([graph.target, into, np.full(out.size, end)])
    capacity = np.concatenate(
        [
            graph.bandwidth,
            built.port_bandwidth[list(one)].ravel(),
            built.port_bandwidth[list(other)].ravel(),
        ]
    )
    whole = np.rint(capacity / unit).astype(np.int32)
    # Links between the same two switches add up.
    edges = coo_array((whole, (source, target)), shape=(count + 2, count + 2)).tocsr()
    return float(maximum_flow(edges, start, end).flow_value) * unit


def bisection(built: Fabric, unit: float = GB) -> float:
    """Return bytes/s from the first half of the units to the second."""
    units = len(built.attachment)
    return cut(built, range(units // 2), range(units // 2, units), unit)
