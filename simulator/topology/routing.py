"""How bytes get from accelerator to accelerator: loads of links, routes, hops and latency."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from simulator.topology.graph import FloatArray, IntArray
from simulator.topology.routes.fabric import Between, FabricRoutes, fabric_routes
from simulator.topology.routes.legs import Ends, Inner, Lanes, legs
from simulator.topology.routes.mesh import mesh_loads
from simulator.topology.routes.ports import NO_PORT
from simulator.topology.routes.sides import Units, units_of
from simulator.topology.routes.spreading import Spreading
from simulator.topology.routes.unreachable import unreachable
from simulator.topology.topology import Topology

__all__ = ["Router", "Spreading"]

_AT_ONCE = 2**14
"""Pairs that are traced link by link at once: it bounds memory and changes no result."""
_ADDED_AT_ONCE = 2**18
"""Pairs whose loads are added up at once, for the same reason."""
_SCATTERED = -1
"""In place of the kind of a unit: a group whose members are in several."""
_DENSE = 8
"""Numbers for each entry up to which entries are added up by counting rather than by sorting."""


@dataclass(frozen=True, eq=False)
class Router:
    """Routes between the accelerators of a topology.

    Inside a unit bytes take the links that they occupy for the least time (see `inside_routes`);
    between units the ports of `choose_ports`, and over the fabric the paths with the fewest links,
    spread as `spreading` says. Links that have failed are avoided. All of it is linear: the loads
    of several messages are the sum of the loads of each.
    """

    topology: Topology
    _: KW_ONLY
    spreading: Spreading = Spreading.IDEAL
    relay: bool = True
    """Whether a message to another rail goes to that rail's port over NVLink first (PXN)."""
    seed: int = 0
    """Of the hash of ECMP."""
    asked: tuple[str, str] = ("", "")
    """The file and the key in it that a message about it names."""

    def loads(self, source: IntArray, target: IntArray, weight: FloatArray) -> FloatArray:
        """Return (links,) the bytes on each link when each source sends `weight` to its target.

        All are accelerators; one that sends to itself loads nothing.

        Raises:
            InputError: a pair is not connected.
        """
        apart = np.flatnonzero(source != target)
        total = np.zeros(self.topology.links)
        for first in range(0, len(apart), _ADDED_AT_ONCE):
            here = apart[first : first + _ADDED_AT_ONCE]
            self._add(total, source[here], target[here], weight[here])
        return total

    def shares(self, source: IntArray, target: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return (pair, link, share) for each link that carries a part of a pair's bytes.

        A link may come several times for one pair.

        Raises:
            InputError: a pair is not connected.
        """
        apart = np.flatnonzero(source != target)
        source, target = source[apart], target[apart]
        inner, lanes = self._legs(source, target)
        found = [
            (leg.pair[item], link, share * leg.share[item])
            for leg in inner
            for item, link, share in self._unit_links(leg.unit, leg.route)
        ]
        if len(lanes.pair):
            up, down = self._cables(lanes)
            found += [(lanes.pair, up, lanes.share), (lanes.pair, down, lanes.share)]
            bytes_ = self._between(lanes, source, target, lanes.share)
            lane, link, share = self._routes.shares(bytes_)
            found.append((lanes.pair[lane], link + self.topology.first_fabric, share))
        pairs, links, shares = zip(*found, strict=True)
        return apart[np.concatenate(pairs)], np.concatenate(links), np.concatenate(shares)

    def hops(self, source: IntArray, target: IntArray) -> FloatArray:
        """Return (pairs,) links that a byte passes; a mean where its paths differ in length."""
        return self._along(np.ones(self.topology.links), source, target)

    def latency(self, source: IntArray, target: IntArray) -> FloatArray:
        """Return (pairs,) seconds of one message of no size; a mean where its paths differ."""
        return self._along(self._latency, source, target)

    def route(self, source: int, target: int) -> list[tuple[int, float]]:
        """Return the links that carry bytes of one pair, rising, and what part of them."""
        _, link, share = self.shares(np.array([source]), np.array([target]))
        links, place = np.unique(link, return_inverse=True)
        total = np.bincount(place, share, minlength=len(links))
        return list(zip(links.tolist(), total.tolist(), strict=True))

    def mesh_loads(self, groups: IntArray) -> FloatArray:
        """Return (links,) the bytes on each link for each wire byte of a rank of groups in units.

        `groups` is (groups, size) accelerators. Those that are joined directly divide a collective
        over as many rings as their links allow (see `ring_weights`). Where they are not (on a
        switch, or some of them not neighbours) each sends to the next one.
        """
        unit, place = np.divmod(np.sort(groups, axis=1), self.topology.width)
        kind = self._units.inside_of[unit[:, 0]]
        kind = np.where((unit == unit[:, :1]).all(axis=1), kind, _SCATTERED)
        alike, number = np.unique(np.column_stack([kind, place]), axis=0, return_inverse=True)
        total = np.zeros((self.topology.units, len(self.topology.unit.graph)))
        routed = []
        for which, row in enumerate(alike):
            mine = np.flatnonzero(number == which)
            found = self._mesh_loads(int(row[0]), row[1:])
            if found is None:
                routed.append(mine)
            else:
                np.add.at(total, unit[mine, 0], found)
        ring = groups[np.concatenate(routed)] if routed else groups[:0]
        source, target = ring.ravel(), np.roll(ring, -1, axis=1).ravel()
        loads = self.loads(source, target, np.ones(len(source)))
        loads[: self.topology.first_up] += total.ravel()
        return loads

    @cached_property
    def _routes(self) -> FabricRoutes:
        topology = self.topology
        assert topology.fabric is not None
        bandwidth = topology.capacity[topology.first_fabric :]
        return fabric_routes(topology.fabric, bandwidth, self.spreading, self.seed)

    @cached_property
    def _units(self) -> Units:
        fabric = self.topology.fabric
        part = np.zeros(0, dtype=np.intp) if fabric is None else self._routes.part
        return units_of(self.topology, part, relay=self.relay)

    @cached_property
    def _latency(self) -> FloatArray:
        """(links,) seconds of one message."""
        topology = self.topology
        parts = [np.tile(topology.unit.graph.latency, topology.units)]
        if topology.fabric is None:
            return np.concatenate([*parts, np.zeros(2 * topology.units * topology.port_count)])
        ports = topology.fabric.port_latency.ravel()
        return np.concatenate([*parts, ports, ports, topology.fabric.graph.latency])

    def _legs(self, source: IntArray, target: IntArray) -> tuple[tuple[Inner, ...], Lanes]:
        ends = Ends.of(source, target, self.topology.width)
        inner, lanes = legs(self._units, ends)
        lost = lanes.pair[lanes.leave == NO_PORT]
        if len(lost):
            raise unreachable(self.topology, source[lost], target[lost], self.asked)
        return inner, lanes

    def _add(
        self, total: FloatArray, source: IntArray, target: IntArray, weight: FloatArray
    ) -> None:
        """Add the bytes on each link of messages between different accelerators."""
        inner, lanes = self._legs(source, target)
        for leg in inner:
            self._add_inner(total, leg, leg.share * weight[leg.pair])
        if len(lanes.pair):
            bytes_ = self._between(lanes, source, target, lanes.share * weight[lanes.pair])
            up, down = self._cables(lanes)
            total += np.bincount(up, bytes_.weight, minlength=len(total))
            total += np.bincount(down, bytes_.weight, minlength=len(total))
            total[self.topology.first_fabric :] += self._routes.carried(bytes_)

    def _cables(self, lanes: Lanes) -> tuple[IntArray, IntArray]:
        """Return the links by which each lane leaves a unit and enters another."""
        up = self.topology.first_up + lanes.from_unit * self.topology.port_count + lanes.leave
        down = self.topology.first_down + lanes.to_unit * self.topology.port_count + lanes.enter
        return up, down

    def _between(
        self, lanes: Lanes, source: IntArray, target: IntArray, weight: FloatArray
    ) -> Between:
        """Return what lanes carry from switch to switch."""
        assert self.topology.fabric is not None
        plugs = self.topology.fabric.attachment
        return Between(
            start=plugs[lanes.from_unit, lanes.leave],
            end=plugs[lanes.to_unit, lanes.enter],
            weight=weight,
            pair=source[lanes.pair] * self.topology.size + target[lanes.pair],
        )

    def _add_inner(self, total: FloatArray, leg: Inner, weight: FloatArray) -> None:
        """Add what legs inside units carry, those of one route in one unit together."""
        routes = self._units.insides[0].ends ** 2
        key = leg.unit * routes + leg.route
        place, weight = _totals(key, weight, self.topology.units * routes)
        unit, route = np.divmod(place, routes)
        for item, link, share in self._unit_links(unit, route):
            total += np.bincount(link, weight[item] * share, minlength=len(total))

    def _unit_links(
        self, unit: IntArray, route: IntArray
    ) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """Yield (entry, link, share) of routes inside units, for each kind of unit."""
        for number, inside in enumerate(self._units.insides):
            mine = np.flatnonzero(self._units.inside_of[unit] == number)
            item, link, share = inside.links(route[mine])
            yield mine[item], unit[mine][item] * len(self.topology.unit.graph) + link, share

    def _along(self, length: FloatArray, source: IntArray, target: IntArray) -> FloatArray:
        """Return (pairs,) the mean length of the paths of each pair, given that of each link."""
        found = np.zeros(len(source))
        for first in range(0, len(source), _AT_ONCE):
            here = slice(first, first + _AT_ONCE)
            pair, link, share = self.shares(source[here], target[here])
            found[here] = np.bincount(pair, share * length[link], minlength=len(source[here]))
        return found

    def _mesh_loads(self, kind: int, members: IntArray) -> FloatArray | None:
        """Return the loads of a group in a unit of a kind over direct links; None without rings."""
        if kind == _SCATTERED:
            return None
        first = int(np.argmax(self._units.inside_of == kind)) * len(self.topology.unit.graph)
        bandwidth = self.topology.capacity[first : first + len(self.topology.unit.graph)]
        return mesh_loads(self.topology.unit, bandwidth, members)


def _totals(key: IntArray, weight: FloatArray, keys: int) -> tuple[IntArray, FloatArray]:
    """Return the different keys (below `keys`), rising, and the sum of the weights of each."""
    if keys > _DENSE * len(key):
        found, place = np.unique(key, return_inverse=True)
        return found, np.bincount(place, weight, minlength=len(found)).astype(np.float64)
    total = np.bincount(key, weight, minlength=keys).astype(np.float64)
    found = np.flatnonzero(total)
    return found, total[found]
