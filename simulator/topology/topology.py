"""A cluster as equal units of accelerators that a fabric of switches joins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from simulator.topology.graph import FloatArray, Graph, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Unit:
    """What repeats: a node, or all nodes of one scale-up domain where that is larger."""

    graph: Graph
    accelerators: IntArray
    """Devices that are accelerators, in the order of their local ranks."""
    ports: IntArray
    """Devices by which it is plugged into the fabric: its NICs; of a torus, the accelerators."""
    affinity: IntArray
    """(accelerators,) which of `ports` each accelerator uses by itself: the nearest NIC."""
    port_bandwidth: FloatArray | None = None
    """(ports,) bytes/s of each port's cable, one direction; None: each is a NIC."""
    port_latency: FloatArray | None = None
    """(ports,) seconds of one message on it; None: as the profile says."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fabric:
    """What joins units: switches, and the switch that each port is plugged into."""

    graph: Graph
    attachment: IntArray
    """(units, ports) the device of `graph` that each port is plugged into."""
    port_bandwidth: FloatArray
    """(units, ports) bytes/s of the cable of each port, one direction."""
    port_latency: FloatArray
    """(units, ports) seconds of one message on it."""
    reduces: bool = False
    """Whether its switches reduce (SHARP)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Topology:
    """Units and their fabric.

    Accelerator `a` is number `a % width` of unit `a // width`. Links are numbered through: those of
    unit 0, of unit 1, ..., then the cables of all ports towards the fabric, then those from it,
    then the links of the fabric.
    """

    title: str
    unit: Unit
    units: int
    fabric: Fabric | None
    """None for one unit alone."""
    changed: tuple[tuple[int, float], ...] = ()
    """Links whose bandwidth differs from what `unit` and `fabric` say, bytes/s; 0 is a failed one,
    which no route takes."""

    @property
    def width(self) -> int:
        """Accelerators of a unit."""
        return len(self.unit.accelerators)

    @property
    def size(self) -> int:
        """Accelerators in all."""
        return self.units * self.width

    @property
    def port_count(self) -> int:
        """Ports of a unit."""
        return len(self.unit.ports)

    @property
    def first_up(self) -> int:
        """Number of the link from port 0 of unit 0 into the fabric."""
        return self.units * len(self.unit.graph)

    @property
    def first_down(self) -> int:
        """Number of the link from the fabric to port 0 of unit 0."""
        return self.first_up + self.units * self.port_count

    @property
    def first_fabric(self) -> int:
        """Number of the first link of the fabric."""
        return self.first_down + self.units * self.port_count

    @property
    def links(self) -> int:
        """Links in all, one direction each."""
        inside = len(self.fabric.graph) if self.fabric is not None else 0
        return self.first_fabric + inside

    @cached_property
    def capacity(self) -> FloatArray:
        """(links,) bytes/s of each link; 0 where it has failed."""
        parts = [np.tile(self.unit.graph.bandwidth, self.units)]
        if self.fabric is not None:
            ports = self.fabric.port_bandwidth.ravel()
            parts += [ports, ports, self.fabric.graph.bandwidth]
        else:
            parts += [np.zeros(2 * self.units * self.port_count)]
        capacity = np.concatenate(parts)
        for link, bandwidth in self.changed:
            capacity[link] = bandwidth
        return capacity

    def opposite(self, link: int) -> int:
        """Return the other direction of a cable's link."""
        if link < self.first_up or link >= self.first_fabric:
            base = 0 if link < self.first_up else self.first_fabric
            return base + ((link - base) ^ 1)
        ports = self.first_down - self.first_up
        return link + ports if link < self.first_down else link - ports

    def link_name(self, link: int) -> str:
        """Return how a report names a link: "node3/nic2 -> leaf0"."""
        if link < self.first_up:
            unit, inside = divmod(link, len(self.unit.graph))
            graph = self.unit.graph
            source, target = graph.source[inside], graph.target[inside]
            return f"{self._in_unit(unit, source)} -> {self._in_unit(unit, target)}"
        assert self.fabric is not None
        if link >= self.first_fabric:
            return self.fabric.graph.link_name(link - self.first_fabric)
        up = link < self.first_down
        unit, port = divmod(link - (self.first_up if up else self.first_down), self.port_count)
        near = self._in_unit(unit, self.unit.ports[port])
        far = self.fabric.graph.devices[self.fabric.attachment[unit, port]]
        return f"{near} -> {far}" if up else f"{far} -> {near}"

    def _in_unit(self, unit: int, device: int) -> str:
        return f"node{unit}/{self.unit.graph.devices[device]}"
