"""Which port each accelerator of a unit uses by itself, where nobody has said."""

from __future__ import annotations

from collections import Counter, deque

import numpy as np

from simulator.topology.graph import DeviceKind, Graph, IntArray

_ENDS = (DeviceKind.ACCELERATOR, DeviceKind.NIC)
"""What passes nothing on here: the way over another accelerator is the relay's matter."""


def nearest_ports(graph: Graph, accelerators: IntArray, ports: IntArray) -> IntArray:
    """Return (accelerators,) the place in `ports` of each accelerator's own.

    It is one of those that the fewest cables lead to, and of these one of those that the widest of
    such ways lead to. Accelerators with the same choice share it in order, as evenly as it goes: of
    four with two NICs at the same distance, the first two take the first.
    """
    if not len(ports):
        return np.zeros(0, dtype=np.intp)
    leaving = _links_of(graph)
    choices = [_choice(graph, leaving, int(device), ports) for device in accelerators]
    alike = Counter(choices)
    seen: Counter[tuple[int, ...]] = Counter()
    found = []
    for choice in choices:
        found.append(choice[seen[choice] * len(choice) // alike[choice]])
        seen[choice] += 1
    return np.array(found, dtype=np.intp)


def _links_of(graph: Graph) -> list[list[int]]:
    """Return the links that leave each device."""
    leaving: list[list[int]] = [[] for _ in graph.devices]
    for link, device in enumerate(graph.source):
        leaving[device].append(link)
    return leaving


def _choice(graph: Graph, leaving: list[list[int]], start: int, ports: IntArray) -> tuple[int, ...]:
    """Return the places of the nearest ports; all of them where none is reached."""
    hops, width = _ways(graph, leaving, start)
    rank = [(hops.get(int(port), len(graph.devices)), -width.get(int(port), 0.0)) for port in ports]
    best = min(rank)
    return tuple(place for place, value in enumerate(rank) if value == best)


def _ways(
    graph: Graph, leaving: list[list[int]], start: int
) -> tuple[dict[int, int], dict[int, float]]:
    """Return the cables on the shortest way to each device, and the widest such way's bytes/s."""
    hops, width = {start: 0}, {start: float("inf")}
    waiting = deque([start])
    while waiting:
        device = waiting.popleft()
        if device != start and graph.kinds[device] in _ENDS:
            continue
        for link in leaving[device]:
            target = int(graph.target[link])
            if target not in hops:
                hops[target] = hops[device] + 1
                width[target] = 0.0
                waiting.append(target)
            if hops[target] == hops[device] + 1:
                through = min(width[device], float(graph.bandwidth[link]))
                width[target] = max(width[target], through)
    return hops, width
