"""Accelerators and NICs in the PCIe slots of a host: sockets, host bridges and switches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from simulator.topology.context import Context, known
from simulator.topology.graph import Cable, DeviceKind, FloatArray, Graph, IntArray, make_graph
from simulator.topology.topology import Unit
from simulator.topology.units.cards import Cards, cards
from simulator.topology.units.nearest_port import nearest_ports
from simulator.topology.units.pcie_file import PcieFile, check_pcie, socket_names


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What stands in the slots of a unit."""

    accelerators: list[str]
    cards: Cards
    sockets: list[str]


def pcie(file: PcieFile, context: Context) -> Unit:
    """Return a tree for each socket, the sockets joined with each other.

    The profile's latency from NIC to NIC is that of the whole way from accelerator to accelerator,
    so the slots' part of it is taken off the NIC's cable.

    Raises:
        InputError: with all lists that do not fit.
    """
    size = known(file.accelerators, context.domain, "unit.accelerators")
    nics = cards(size, None, context)
    check_pcie(file, size, len(nics.names))
    names = [f"gpu{place}" for place in range(size)]
    parts = _Parts(accelerators=names, cards=nics, sockets=socket_names(file))
    hop = _hop(file, context)
    graph = make_graph(_devices(file, parts), _cables(file, parts, context, hop))
    accelerators, ports = np.arange(size), nics.places(size)
    return Unit(
        graph=graph,
        accelerators=accelerators,
        ports=ports,
        affinity=_affinity(file, graph, accelerators, ports),
        port_bandwidth=nics.bandwidth(context),
        port_latency=_port_latency(len(ports), context, hop),
    )


def _hop(file: PcieFile, context: Context) -> float:
    """Return seconds of one message on one link."""
    given = None if file.latency is None else file.latency / 2
    return float(known(given, context.link_latency, "unit.latency"))


def _devices(file: PcieFile, parts: _Parts) -> list[tuple[str, DeviceKind]]:
    return [
        *((name, DeviceKind.ACCELERATOR) for name in parts.accelerators),
        *parts.cards.devices,
        *((switch.name, DeviceKind.SWITCH) for switch in file.switch),
        *((name, DeviceKind.HOST) for name in parts.sockets),
    ]


def _cables(file: PcieFile, parts: _Parts, context: Context, hop: float) -> list[Cable]:
    slot = known(file.bandwidth, context.host_bandwidth, "unit.bandwidth")
    names, nics = parts.accelerators, parts.cards
    card = file.nic_bandwidth or max(slot, context.nic_bandwidth or 0.0)
    above = _above(file, parts)
    return [
        *(Cable(one=name, other=above[name], bandwidth=slot, latency=hop) for name in names),
        *(
            Cable(one=name, other=above[name], bandwidth=card * max(1.0, count))
            for name, count in zip(nics.names, nics.count, strict=True)
        ),
        *(
            Cable(
                one=switch.name, other=switch.above, bandwidth=switch.bandwidth or slot, latency=hop
            )
            for switch in file.switch
        ),
        *(
            Cable(one=one, other=other, bandwidth=file.socket_bandwidth or 0.0, latency=hop)
            for one, other in combinations(parts.sockets, 2)
        ),
        *(
            Cable(
                one=names[one],
                other=names[other],
                bandwidth=file.bridge_bandwidth or 0.0,
                latency=2 * hop,
            )
            for one, other in file.bridge
        ),
    ]


def _above(file: PcieFile, parts: _Parts) -> dict[str, str]:
    """Return what each accelerator and NIC hangs on: its switch, or else a socket."""
    above = _spread(parts.accelerators, parts.sockets) | _spread(parts.cards.names, parts.sockets)
    for switch in file.switch:
        above |= {parts.accelerators[place]: switch.name for place in switch.accelerators}
        above |= {parts.cards.names[place]: switch.name for place in switch.nics}
    return above


def _spread(names: Sequence[str], sockets: Sequence[str]) -> dict[str, str]:
    """Return a socket for each name, in order, as evenly as it goes."""
    return {name: sockets[place * len(sockets) // len(names)] for place, name in enumerate(names)}


def _affinity(file: PcieFile, graph: Graph, accelerators: IntArray, ports: IntArray) -> IntArray:
    if file.affinity is None:
        return nearest_ports(graph, accelerators, ports)
    return np.array(file.affinity, dtype=np.intp)


def _port_latency(ports: int, context: Context, hop: float) -> FloatArray | None:
    if context.cable_latency is None:
        return None
    return np.full(ports, max(0.0, context.cable_latency - hop))
