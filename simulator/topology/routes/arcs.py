"""Directed links sorted by where they begin, and bytes that move along them to a target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.topology.graph import FloatArray, IntArray

BoolArray = NDArray[np.bool_]
SAME = 1e-9
"""Relative difference below which two lengths of paths, sums of the same terms, are equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Arcs:
    """Links sorted by the device at which they begin, so that those of a device are a slice."""

    first: IntArray
    """(devices + 1,) the first arc out of each device."""
    source: IntArray
    target: IntArray
    bandwidth: FloatArray
    """(arcs,) bytes/s."""
    cost: FloatArray
    """(arcs,) length of each: 1 where hops count, seconds a byte where width does."""
    link: IntArray
    """(arcs,) place in the columns that `arcs_of` was given."""

    @property
    def devices(self) -> int:
        """Devices in all."""
        return len(self.first) - 1

    def leaving(self, device: IntArray) -> tuple[IntArray, IntArray]:
        """Return an entry of `device` and an arc out of it, for every such arc."""
        counts = (self.first[1:] - self.first[:-1])[device]
        item = np.repeat(np.arange(len(device)), counts)
        before = np.cumsum(counts) - counts
        return item, np.arange(len(item)) + (self.first[device] - before)[item]


@dataclass(frozen=True, kw_only=True, eq=False)
class Flow:
    """Bytes at devices on their way to targets, or on arcs, as columns."""

    row: IntArray
    """On whose account; flows of one row, place and target are one."""
    place: IntArray
    """The device where they are; of a result, the arc that they take."""
    column: IntArray
    """Their target: its column in the distances."""
    weight: FloatArray

    def joined(self, devices: int) -> Flow:
        """Return the flow with entries of one row, place (of `devices`) and target added up."""
        columns = int(self.column.max(initial=0)) + 1
        key = (self.row * columns + self.column) * devices + self.place
        _, first, same = np.unique(key, return_index=True, return_inverse=True)
        return Flow(
            row=self.row[first],
            place=self.place[first],
            column=self.column[first],
            weight=np.bincount(same, self.weight, minlength=len(first)).astype(np.float64),
        )


Pick = Callable[[Flow, IntArray, IntArray], BoolArray]
"""Which arcs to take, of all that lead nearer: (flow, entry of the flow, arc), entries rising."""


def arcs_of(
    devices: int, source: IntArray, target: IntArray, bandwidth: FloatArray, cost: FloatArray
) -> Arcs:
    """Return links as arcs; those without bandwidth have failed and are left out."""
    order = np.argsort(source, kind="stable")
    order = order[bandwidth[order] > 0]
    counts = np.bincount(source[order], minlength=devices)
    return Arcs(
        first=np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        source=source[order],
        target=target[order],
        bandwidth=bandwidth[order],
        cost=cost[order],
        link=order,
    )


def take_all(_flow: Flow, _item: IntArray, arc: IntArray) -> BoolArray:
    """Pick all arcs: ideal spreading."""
    return np.ones(len(arc), dtype=np.bool_)


def spread(arcs: Arcs, distance: NDArray[np.number], flow: Flow, pick: Pick = take_all) -> Flow:
    """Return what each arc carries while all bytes move to their targets along shortest paths.

    `distance` is (devices, targets): how far each device is from each target. At a device bytes
    are divided over the picked arcs that lead nearer, in proportion to their bandwidth. All
    entries move one arc at a time together, so that the number of array operations is the length
    of the longest path.
    """
    done: list[Flow] = []
    while len(flow.row):
        item, arc = _nearer(arcs, distance, flow)
        kept = pick(flow, item, arc)
        item, arc = item[kept], arc[kept]
        width = np.bincount(item, arcs.bandwidth[arc], minlength=len(flow.row))
        weight = flow.weight[item] * (arcs.bandwidth[arc] / width[item])
        row, column = flow.row[item], flow.column[item]
        done.append(Flow(row=row, place=arc, column=column, weight=weight))
        head = arcs.target[arc]
        away = distance[head, column] > 0
        ahead = Flow(row=row[away], place=head[away], column=column[away], weight=weight[away])
        flow = ahead.joined(arcs.devices)
    return _chained(done)


def _nearer(arcs: Arcs, distance: NDArray[np.number], flow: Flow) -> tuple[IntArray, IntArray]:
    """Return (entry of the flow, arc) for each arc that lies on a shortest path to the target."""
    item, arc = arcs.leaving(flow.place)
    here = distance[flow.place, flow.column]
    gain = here[item] - distance[arcs.target[arc], flow.column[item]]
    # Behind a very slow link a distance is so long that what counts as rounding of it is longer
    # than other arcs: half an arc is the most that may be missing, or bytes would go in circles.
    cost = arcs.cost[arc]
    kept = np.flatnonzero(np.abs(gain - cost) <= np.minimum(SAME * here[item], cost / 2))
    return item[kept], arc[kept]


def _chained(flows: list[Flow]) -> Flow:
    empty = np.empty(0, dtype=np.intp)
    if not flows:
        return Flow(row=empty, place=empty, column=empty, weight=np.empty(0))
    return Flow(
        row=np.concatenate([flow.row for flow in flows]),
        place=np.concatenate([flow.place for flow in flows]),
        column=np.concatenate([flow.column for flow in flows]),
        weight=np.concatenate([flow.weight for flow in flows]),
    )
