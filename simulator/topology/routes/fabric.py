"""Routes over a fabric: how bytes between its switches spread over its links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from simulator.errors import Problem, UnsupportedError
from simulator.topology.fabrics.torus import coordinates
from simulator.topology.graph import FloatArray, Graph, IntArray
from simulator.topology.routes.arcs import Arcs, Flow, spread
from simulator.topology.routes.contract import Contracted, contract
from simulator.topology.routes.distance import hop_distance
from simulator.topology.routes.spreading import Spreading, pick_of
from simulator.topology.topology import Fabric

_AT_ONCE = 2**22
"""Arcs times targets that are worked on at once: it bounds memory and changes no result."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Between:
    """Bytes from switch to switch, as columns."""

    start: IntArray
    """Devices of the fabric."""
    end: IntArray
    weight: FloatArray
    pair: IntArray
    """A number for the two accelerators that they are for: what ECMP hashes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FabricRoutes:
    """A fabric that is ready to be asked what its links carry."""

    contracted: Contracted
    part: IntArray
    """(devices,) number of the part of the fabric in which all reach each other."""
    dimension: IntArray
    """(arcs,) dimension of a torus that each runs along; 0 where that does not matter."""
    spreading: Spreading
    seed: int

    def carried(self, bytes_: Between) -> FloatArray:
        """Return (links,) the bytes on each link."""
        total = np.zeros(len(self.contracted.arcs.link))
        for flow, _ in self._flows(bytes_, apart=self.spreading is Spreading.HASH):
            total += np.bincount(flow.place, flow.weight, minlength=len(total))
        return self.contracted.loads(total)

    def shares(self, bytes_: Between) -> tuple[IntArray, IntArray, FloatArray]:
        """Return (entry, link, bytes) for each link that an entry's bytes take."""
        found = [(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp), np.zeros(0))]
        for flow, entry in self._flows(bytes_, apart=True):
            item, link, share = self.contracted.links(flow.place)
            found.append((entry[flow.row[item]], link, flow.weight[item] * share))
        entries, links, weights = zip(*found, strict=True)
        return np.concatenate(entries), np.concatenate(links), np.concatenate(weights)

    def _flows(self, bytes_: Between, *, apart: bool) -> Iterator[tuple[Flow, IntArray]]:
        """Yield what arcs carry, some targets at a time, and the entry that each row stands for.

        Unless entries are wanted `apart`, all bytes to one target flow as one.
        """
        arcs, device = self.contracted.arcs, self.contracted.device
        start, end = device[bytes_.start], device[bytes_.end]
        entry = np.flatnonzero(start != end)
        entry = entry[np.argsort(end[entry], kind="stable")]
        targets, column = np.unique(end[entry], return_inverse=True)
        step = max(1, _AT_ONCE // max(1, len(arcs.link)))
        for first in range(0, len(targets), step):
            low, high = np.searchsorted(column, [first, first + step])
            mine = entry[low:high]
            flow = Flow(
                row=np.arange(len(mine)) if apart else np.zeros(len(mine), dtype=np.intp),
                place=start[mine],
                column=column[low:high] - first,
                weight=bytes_.weight[mine],
            ).joined(arcs.devices)
            distance = hop_distance(arcs, targets[first : first + step], flow)
            pick = pick_of(self.spreading, bytes_.pair[mine], self.dimension, self.seed)
            yield spread(arcs, distance, flow, pick), mine


def fabric_routes(
    fabric: Fabric,
    bandwidth: FloatArray,
    spreading: Spreading,
    seed: int,
    *,
    apart: IntArray | None = None,
) -> FabricRoutes:
    """Return a fabric whose links have `bandwidth` bytes/s (0: failed), ready to be asked.

    Bytes may begin and end at switches with ports, and at those that are kept `apart`.

    Raises:
        UnsupportedError: dimension order of a fabric that is no torus.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = fabric.graph
    plugged = np.zeros(len(graph.devices), dtype=np.bool_)
    plugged[fabric.attachment] = True
    if apart is not None:
        plugged[apart] = True
    contracted = contract(graph, bandwidth, plugged, merge=spreading is Spreading.IDEAL)
    arcs = contracted.arcs
    edges = (np.ones(len(arcs.link)), (arcs.source, arcs.target))
    matrix = coo_array(edges, shape=(arcs.devices, arcs.devices))
    _, part = connected_components(matrix, directed=True, connection="strong")
    ordered = spreading is Spreading.DIMENSION_ORDER
    return FabricRoutes(
        contracted=contracted,
        part=part[contracted.device].astype(np.intp),
        dimension=_dimensions(graph, arcs) if ordered else np.zeros(len(arcs.link), dtype=np.intp),
        spreading=spreading,
        seed=seed,
    )


def _dimensions(graph: Graph, arcs: Arcs) -> IntArray:
    """Return the dimension along which each arc runs."""
    places = coordinates(graph)
    if places is None:
        raise UnsupportedError(
            Problem(
                key="spreading",
                found=repr(str(Spreading.DIMENSION_ORDER)),
                rule="only a torus has an order of dimensions",
                fix=f'"{Spreading.IDEAL}" or "{Spreading.HASH}"',
            )
        )
    found: IntArray = np.argmax(places[arcs.source] != places[arcs.target], axis=1)
    return found
