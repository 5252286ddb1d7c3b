"""Switches that do the same become one: a rail's 32 equal spines are one wide spine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.topology.graph import FloatArray, Graph, IntArray
from simulator.topology.routes.arcs import Arcs, BoolArray, arcs_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Contracted:
    """A fabric with fewer devices and links, in which shares are as in the whole one."""

    arcs: Arcs
    device: IntArray
    """(devices of the fabric,) what each has become."""
    arc: IntArray
    """(links of the fabric,) the arc that each is part of; -1 where it has failed."""
    share: FloatArray
    """(links of the fabric,) its part of the arc's bytes."""

    def loads(self, carried: FloatArray) -> FloatArray:
        """Return the bytes on each link of the fabric, given those on each arc."""
        loads = np.zeros(len(self.arc))
        alive = self.arc >= 0
        loads[alive] = carried[self.arc[alive]] * self.share[alive]
        return loads

    def links(self, arc: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return (entry of `arc`, link, share) for each link of each of the arcs."""
        order = np.argsort(self.arc, kind="stable")
        order = order[np.count_nonzero(self.arc < 0) :]
        counts = np.bincount(self.arc[order], minlength=len(self.arcs.link))
        first = np.cumsum(counts) - counts
        item = np.repeat(np.arange(len(arc)), counts[arc])
        before = np.cumsum(counts[arc]) - counts[arc]
        link = order[np.arange(len(item)) + (first[arc] - before)[item]]
        return item, link, self.share[link]


def contract(graph: Graph, bandwidth: FloatArray, fixed: BoolArray, *, merge: bool) -> Contracted:
    """Return a fabric with its equal switches made one, and its parallel links too.

    Two switches are equal if no port is plugged into either (`fixed` says where one is) and both
    have links of the same bandwidth to and from the same devices: bytes that are divided in
    proportion to bandwidth visit them alike. Failed links (no bandwidth) count as absent, so that a
    damaged switch stands alone. Without `merge` all stays as it is.
    """
    device = _equal_switches(graph, bandwidth, fixed) if merge else np.arange(len(graph.devices))
    devices = int(device.max(initial=-1)) + 1
    alive = np.flatnonzero(bandwidth > 0)
    source, target = device[graph.source[alive]], device[graph.target[alive]]
    pair = source * devices + target if merge else alive
    _, first, same = np.unique(pair, return_index=True, return_inverse=True)
    width = np.bincount(same, bandwidth[alive], minlength=len(first)).astype(np.float64)
    arcs = arcs_of(devices, source[first], target[first], width, np.ones(len(first)))
    place = np.empty(len(first), dtype=np.intp)
    place[arcs.link] = np.arange(len(first))
    arc = np.full(len(graph), -1, dtype=np.intp)
    arc[alive] = place[same]
    share = np.zeros(len(graph))
    share[alive] = bandwidth[alive] / width[same]
    return Contracted(arcs=arcs, device=device, arc=arc, share=share)


def _equal_switches(graph: Graph, bandwidth: FloatArray, fixed: BoolArray) -> IntArray:
    """Return a number for each device, the same for equal ones."""
    alive = np.flatnonzero(bandwidth > 0)
    ends = np.concatenate([graph.source[alive], graph.target[alive]])
    far = np.concatenate([graph.target[alive], graph.source[alive]])
    way = np.repeat([0.0, 1.0], len(alive))
    width = np.tile(bandwidth[alive], 2)
    order = np.lexsort((width, way, far, ends))
    seen = np.stack([far[order].astype(np.float64), way[order], width[order]], axis=1)
    first = np.searchsorted(ends[order], np.arange(len(graph.devices) + 1))
    number: dict[bytes | int, int] = {}
    return np.array(
        [
            number.setdefault(
                device if fixed[device] else seen[first[device] : first[device + 1]].tobytes(),
                len(number),
            )
            for device in range(len(graph.devices))
        ],
        dtype=np.intp,
    )
