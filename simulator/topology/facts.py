"""What a topology is made of, in numbers: its links, tiers, oversubscription, bisection."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from simulator.topology.graph import FloatArray, Graph, IntArray
from simulator.topology.half import half_bandwidth
from simulator.topology.topology import Topology

_AT_ONCE = 256
"""Switches from which distances are found at once: it bounds memory."""
_MOST_STARTS = 2048
"""Switches from which distances are found at all; of more, so many evenly chosen ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CableClass:
    """Cables that join the same kinds of devices with the same bandwidth."""

    ends: str
    """"accelerator - switch", or numbers of tiers."""
    count: int
    """Of which at least one direction works."""
    bandwidth: float
    """Bytes/s of each, one direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Switches that are equally far from ports; tier 1 has ports plugged into it."""

    number: int
    switches: int
    into: float
    """Bytes/s from below (ports, or the tier below) into all its switches together."""
    across: float
    """Bytes/s between its switches, one direction (torus, dragonfly)."""
    out: float
    """Bytes/s to the tier above; 0 at the top."""
    oversubscription: float | None
    """`into` over `out` of the switch where it is largest; None where nothing is above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyFacts:
    """A topology in numbers."""

    title: str
    units: int
    width: int
    """Accelerators of a unit."""
    ports: int
    """Of a unit."""
    devices: dict[str, int]
    """Of one unit, by kind."""
    unit_cables: tuple[CableClass, ...]
    """Of one unit."""
    port_cables: tuple[CableClass, ...]
    """Between all ports and the fabric."""
    fabric_cables: tuple[CableClass, ...]
    tiers: tuple[Tier, ...]
    half: float
    """Bytes/s that the first half of the units (of a single unit's accelerators) can send to the
    other half: the bisection bandwidth where units are numbered along the fabric."""
    switches_passed: int
    """Most switches of the fabric between two ports."""
    exact: bool
    """Whether `switches_passed` looked at all switches."""
    reduces: bool
    """Whether switches of the fabric reduce (SHARP)."""

    @property
    def accelerators(self) -> int:
        """Accelerators in all."""
        return self.units * self.width


def topology_facts(topology: Topology) -> TopologyFacts:
    """Return a topology in numbers; links that have failed count as absent."""
    fabric, unit = topology.fabric, topology.unit
    kinds = [str(kind) for kind in unit.graph.kinds]
    passed, exact = _switches_passed(topology)
    return TopologyFacts(
        title=topology.title,
        units=topology.units,
        width=topology.width,
        ports=topology.port_count,
        devices=dict(Counter(kinds)),
        unit_cables=_classes(unit.graph, unit.graph.bandwidth, kinds),
        port_cables=_port_classes(topology),
        fabric_cables=() if fabric is None else _fabric_classes(topology),
        tiers=() if fabric is None else _tiers(topology),
        half=half_bandwidth(topology),
        switches_passed=passed,
        exact=exact,
        reduces=fabric is not None and fabric.reduces,
    )


def tier_numbers(topology: Topology) -> IntArray:
    """Return (switches of the fabric,) how far each is from the nearest port, from 1.

    0 is a switch that no link leads to.
    """
    assert topology.fabric is not None
    graph = topology.fabric.graph
    tier = np.zeros(len(graph.devices), dtype=np.intp)
    tier[np.unique(topology.fabric.attachment)] = 1
    alive = _fabric_capacity(topology) > 0
    source, target = graph.source[alive], graph.target[alive]
    number = 1
    while True:
        above = target[(tier[source] == number) & (tier[target] == 0)]
        if not len(above):
            return tier
        number += 1
        tier[above] = number


def _fabric_capacity(topology: Topology) -> FloatArray:
    return topology.capacity[topology.first_fabric :]


def _classes(graph: Graph, bandwidth: FloatArray, names: list[str]) -> tuple[CableClass, ...]:
    """Return the cables of a graph by the names of their ends; dead ones are left out."""
    links: Counter[tuple[str, float]] = Counter()
    for source, target, rate in zip(graph.source, graph.target, bandwidth.tolist(), strict=True):
        one, other = sorted((names[source], names[target]))
        links[f"{one} - {other}", rate] += rate > 0
    return tuple(
        CableClass(ends=ends, bandwidth=rate, count=(count + 1) // 2)
        for (ends, rate), count in sorted(links.items(), key=lambda item: -item[0][1])
        if count
    )


def _port_classes(topology: Topology) -> tuple[CableClass, ...]:
    if topology.fabric is None:
        return ()
    up = topology.capacity[topology.first_up : topology.first_down]
    rates, counts = np.unique(up[up > 0], return_counts=True)
    return tuple(
        CableClass(ends="port - tier 1", bandwidth=float(rate), count=int(count))
        for rate, count in zip(rates[::-1], counts[::-1], strict=True)
    )


def _fabric_classes(topology: Topology) -> tuple[CableClass, ...]:
    assert topology.fabric is not None
    names = [f"tier {number}" for number in tier_numbers(topology)]
    return _classes(topology.fabric.graph, _fabric_capacity(topology), names)


def _tiers(topology: Topology) -> tuple[Tier, ...]:
    """Return the tiers of a fabric, from the ports up."""
    fabric = topology.fabric
    assert fabric is not None
    tier, capacity = tier_numbers(topology), _fabric_capacity(topology)
    count, source, target = len(tier), fabric.graph.source, fabric.graph.target
    ports = topology.capacity[topology.first_up : topology.first_down]
    rising = tier[target] == tier[source] + 1
    level = tier[target] == tier[source]
    into, across, out = np.zeros((3, count))
    np.add.at(into, fabric.attachment.ravel(), ports)
    np.add.at(into, target[rising], capacity[rising])
    np.add.at(out, source[rising], capacity[rising])
    np.add.at(across, source[level], capacity[level])
    return tuple(
        _tier(number, np.flatnonzero(tier == number), into, across, out)
        for number in range(1, int(tier.max()) + 1)
    )


def _tier(
    number: int, members: IntArray, into: FloatArray, across: FloatArray, out: FloatArray
) -> Tier:
    rising = members[out[members] > 0]
    ratio = float((into[rising] / out[rising]).max()) if len(rising) else None
    return Tier(
        number=number,
        switches=len(members),
        into=float(into[members].sum()),
        across=float(across[members].sum()),
        out=float(out[members].sum()),
        oversubscription=ratio,
    )


def _switches_passed(topology: Topology) -> tuple[int, bool]:
    """Return the most switches between two ports that reach each other, and whether it is exact."""
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import shortest_path

    if topology.fabric is None:
        return 0, True
    graph, alive = topology.fabric.graph, _fabric_capacity(topology) > 0
    count = len(graph.devices)
    ends = (graph.source[alive], graph.target[alive])
    near = csr_array(coo_array((np.ones(len(ends[0])), ends), shape=(count, count)))
    leaves = np.unique(topology.fabric.attachment)
    chosen = np.linspace(0, len(leaves) - 1, min(len(leaves), _MOST_STARTS)).astype(np.intp)
    most = 0.0
    for first in range(0, len(chosen), _AT_ONCE):
        starts = leaves[chosen[first : first + _AT_ONCE]]
        far = shortest_path(near, unweighted=True, indices=starts)[:, leaves]
        most = max(most, float(far[np.isfinite(far)].max()))
    return int(most) + 1, len(chosen) == len(leaves)
