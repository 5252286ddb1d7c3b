"""Independent answers: all shortest paths one by one, and what devices take in and give out."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from simulator.topology.graph import Cable, DeviceKind, Graph, make_graph
from simulator.topology.topology import Fabric, Topology, Unit
from simulator.topology.whole import device_count, in_units, link_ends


def split_over_shortest_paths(graph: Graph, start: int, end: int) -> dict[int, float]:
    """Return the share of each link when bytes are split at each device by bandwidth."""
    leaving = defaultdict(list)
    for link in range(len(graph)):
        leaving[int(graph.source[link])].append(link)
    distance = {end: 0}
    for _ in graph.devices:
        for link in range(len(graph)):
            one, other = int(graph.source[link]), int(graph.target[link])
            if other in distance:
                distance[one] = min(distance.get(one, 10**9), distance[other] + 1)
    shares: dict[int, float] = defaultdict(float)

    def walk(device: int, share: float) -> None:
        if device == end:
            return
        onward = [x for x in leaving[device] if _nearer(graph, x, distance)]
        width = sum(graph.bandwidth[x] for x in onward)
        for link in onward:
            part = share * graph.bandwidth[link] / width
            shares[link] += part
            walk(int(graph.target[link]), part)

    walk(start, 1.0)
    return dict(shares)


def _nearer(graph: Graph, link: int, distance: dict[int, int]) -> bool:
    one, other = int(graph.source[link]), int(graph.target[link])
    return other in distance and distance[other] == distance[one] - 1


def surplus(topology: Topology, loads: np.ndarray) -> np.ndarray:
    """Return (devices,) bytes that leave each device less those that arrive."""
    source, target = link_ends(topology)
    count = device_count(topology)
    return np.bincount(source, loads, count) - np.bincount(target, loads, count)


def asked_surplus(
    topology: Topology, source: np.ndarray, target: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Return what `surplus` must be: what accelerators send less what they receive."""
    devices = in_units(topology, topology.unit.accelerators).ravel()
    count = device_count(topology)
    sent = np.bincount(devices[source], weight, count)
    return sent - np.bincount(devices[target], weight, count)


def bare_units(
    switches: int, cables: list[tuple[int, int, float]], attachment: list[int]
) -> Topology:
    """Return accelerators that are their own ports, plugged into switches joined by cables."""
    unit = Unit(
        graph=make_graph([("chip", DeviceKind.ACCELERATOR)], []),
        accelerators=np.array([0]),
        ports=np.array([0]),
        affinity=np.array([0]),
    )
    names = [f"s{number}" for number in range(switches)]
    graph = make_graph(
        [(name, DeviceKind.SWITCH) for name in names],
        [Cable(one=names[a], other=names[b], bandwidth=width) for a, b, width in cables],
    )
    ports = np.ones((len(attachment), 1))
    fabric = Fabric(
        graph=graph,
        attachment=np.array(attachment).reshape(-1, 1),
        port_bandwidth=ports,
        port_latency=0 * ports,
    )
    return Topology(title="random", unit=unit, units=len(attachment), fabric=fabric)


def fabric_of(topology: Topology) -> Fabric:
    """Return the fabric, which there is."""
    assert topology.fabric is not None
    return topology.fabric
