"""Routes inside a unit: between its accelerators and ports."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.topology.graph import DeviceKind, FloatArray, IntArray
from simulator.topology.routes.arcs import SAME, Arcs, Flow, arcs_of, spread
from simulator.topology.topology import Unit

_ONE_MORE = 1e-4
"""What a link costs besides the time of its bytes, in times of the widest link: enough to prefer
the shorter of two paths that are equally fast."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Inside:
    """Routes between the ends of a unit: its accelerators and ports, each device once."""

    accelerator: IntArray
    """(accelerators,) the end that each accelerator is."""
    port: IntArray
    """(ports,) the end that each port is."""
    cost: FloatArray
    """(ends, ends) seconds a byte spends on links, all together; infinite where no path is."""
    first: IntArray
    """(ends x ends + 1,) where the links of each route begin; route `s x ends + t` is s to t."""
    link: IntArray
    """Links of the unit, route by route."""
    share: FloatArray
    """What part of the route's bytes each link carries."""

    @property
    def ends(self) -> int:
        """Accelerators and ports."""
        return len(self.cost)

    def links(self, route: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return (entry of `route`, link, share) for each link of each of the routes."""
        counts = self.first[route + 1] - self.first[route]
        item = np.repeat(np.arange(len(route)), counts)
        before = np.cumsum(counts) - counts
        place = np.arange(len(item)) + (self.first[route] - before)[item]
        return item, self.link[place], self.share[place]


def inside_routes(unit: Unit, bandwidth: FloatArray) -> Inside:
    """Return the routes of a unit whose links have `bandwidth` bytes/s; 0 is a failed one.

    A route takes the links that its bytes occupy for the least time in all: the least sum of
    1/bandwidth, and of equally fast ones the fewest. So wide links come before narrow ones (NVLink
    before PCIe, with an accelerator that forwards, as NCCL's NVB paths), and a direct link before a
    detour over links twice as wide. Equal paths share in proportion to bandwidth. Parallel links
    count as one wide one. Accelerators, switches and hosts forward; a NIC does not.
    """
    ends, place = np.unique(np.concatenate([unit.accelerators, unit.ports]), return_inverse=True)
    arcs, origin = _one_way_nics(unit, bandwidth)
    distance = _distance(arcs, ends)
    cost = distance[origin[ends]]
    np.fill_diagonal(cost, 0.0)
    flow = spread(arcs, distance, _between_all(cost, origin[ends]))
    order = np.argsort(flow.row, kind="stable")
    counts = np.bincount(flow.row, minlength=cost.size)
    return Inside(
        accelerator=place[: len(unit.accelerators)],
        port=place[len(unit.accelerators) :],
        cost=cost,
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        link=arcs.link[flow.place[order]],
        share=flow.weight[order],
    )


def near(cost: FloatArray, limit: FloatArray) -> NDArray[np.bool_]:
    """Return where a cost is at most a limit, but for rounding."""
    return np.isfinite(cost) & (cost <= limit * (1 + SAME))


def _one_way_nics(unit: Unit, bandwidth: FloatArray) -> tuple[Arcs, IntArray]:
    """Return the arcs of a unit, and the device from which each device sends.

    A NIC receives as itself and sends as another device, so that no path leads through it.
    """
    graph = unit.graph
    origin = np.arange(len(graph.devices))
    nics = graph.of_kind(DeviceKind.NIC)
    origin[nics] = len(origin) + np.arange(len(nics))
    devices = len(origin) + len(nics)
    source = origin[graph.source]
    _, pair = np.unique(source * devices + graph.target, return_inverse=True)
    together = np.bincount(pair, bandwidth)[pair]
    cost = 1 / np.where(together > 0, together, np.inf)
    cost += _ONE_MORE * cost[together > 0].min(initial=np.inf)
    return arcs_of(devices, source, graph.target, bandwidth, cost), origin


def _distance(arcs: Arcs, ends: IntArray) -> FloatArray:
    """Return (devices, ends) the least cost from each device to each end."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    one_of_each = np.unique(arcs.source * arcs.devices + arcs.target, return_index=True)[1]
    back = csr_array(
        (arcs.cost[one_of_each], (arcs.target[one_of_each], arcs.source[one_of_each])),
        shape=(arcs.devices, arcs.devices),
    )
    found: FloatArray = np.asarray(dijkstra(back, indices=ends), dtype=np.float64)
    return found.T


def _between_all(cost: FloatArray, origin: IntArray) -> Flow:
    """Return one byte from each end to each other end that it reaches."""
    start, column = np.nonzero(np.isfinite(cost) & (cost > 0))
    row = start * len(cost) + column
    return Flow(row=row, place=origin[start], column=column, weight=np.ones(len(row)))
