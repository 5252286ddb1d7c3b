"""A unit as any devices joined by any cables: what importers write."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord
from simulator.topology.checks import (
    cable_problems,
    device_problems,
    port_problems,
    unknown_problems,
)
from simulator.topology.context import Context, known
from simulator.topology.graph import Cable, DeviceKind, make_graph
from simulator.topology.topology import Unit
from simulator.topology.units.nearest_port import nearest_ports
from simulator.units import Bandwidth, Seconds

Name = Annotated[str, Field(min_length=1, max_length=64)]


class CableFile(FileRecord):
    """A cable of a unit, full duplex."""

    ends: tuple[Name, Name]
    """The two devices that it joins."""
    bandwidth: Bandwidth
    """One direction."""
    latency: Seconds = 0.0
    """One message."""


class PortFile(FileRecord):
    """A device by which the unit is plugged into the fabric."""

    device: Name
    """A NIC; or an accelerator that is plugged in itself."""
    bandwidth: Bandwidth | None = None
    """Nominal, one direction; left out, the profile's: of a NIC, or all links of an accelerator."""
    latency: Seconds | None = None
    """One message on its cable; left out, half of the profile's from NIC to NIC."""


class GraphFile(FileRecord):
    """Devices by name, the cables between them, and the ports by which they leave the unit."""

    accelerators: tuple[Name, ...] = Field(min_length=1)
    """In the order of their local ranks."""
    nics: tuple[Name, ...] = ()
    switches: tuple[Name, ...] = ()
    """Of any kind: NVSwitch, PCIe."""
    hosts: tuple[Name, ...] = ()
    """Sockets with their host bridges."""
    cable: tuple[CableFile, ...] = ()
    port: tuple[PortFile, ...] | None = None
    """Left out, each of `nics` is one."""
    affinity: tuple[Name, ...] | None = None
    """Port of each accelerator; left out, the nearest: over the fewest cables, then the widest, and
    as evenly as it goes."""


def graph_unit(file: GraphFile, context: Context) -> Unit:
    """Return the unit that a file draws.

    Raises:
        InputError: with all names, cables and ports that do not fit.
    """
    ports = _ports(file)
    cables = _cables(file)
    problems = _problems(file, [port.device for port in ports], cables)
    if problems:
        raise InputError(*problems)
    graph = make_graph(_devices(file), cables)
    accelerators = np.arange(len(file.accelerators))
    numbers = np.array([graph.number[port.device] for port in ports], dtype=np.intp)
    unit = Unit(
        graph=graph,
        accelerators=accelerators,
        ports=numbers,
        affinity=nearest_ports(graph, accelerators, numbers),
        port_bandwidth=np.array([_bandwidth(file, port, context) for port in ports]),
        port_latency=np.array([_latency(file, port, context) for port in ports]),
    )
    if file.affinity is None:
        return unit
    place = {port.device: number for number, port in enumerate(ports)}
    own = np.array([place[name] for name in file.affinity], dtype=np.intp)
    return replace(unit, affinity=own)


def _ports(file: GraphFile) -> tuple[PortFile, ...]:
    return tuple(PortFile(device=name) for name in file.nics) if file.port is None else file.port


def _cables(file: GraphFile) -> list[Cable]:
    return [
        Cable(
            one=cable.ends[0],
            other=cable.ends[1],
            bandwidth=cable.bandwidth,
            latency=cable.latency,
        )
        for cable in file.cable
    ]


def _devices(file: GraphFile) -> list[tuple[str, DeviceKind]]:
    """Return all devices, accelerators first."""
    return [
        (name, kind)
        for names, kind in (
            (file.accelerators, DeviceKind.ACCELERATOR),
            (file.nics, DeviceKind.NIC),
            (file.switches, DeviceKind.SWITCH),
            (file.hosts, DeviceKind.HOST),
        )
        for name in names
    ]


def _problems(file: GraphFile, ports: list[str], cables: list[Cable]) -> list[Problem]:
    names = [name for name, _ in _devices(file)]
    problems = device_problems(
        {
            "unit.accelerators": file.accelerators,
            "unit.nics": file.nics,
            "unit.switches": file.switches,
            "unit.hosts": file.hosts,
        }
    )
    problems += cable_problems(names, cables, "unit.cable")
    if file.port is not None:
        problems += port_problems(ports, "unit.port")
        problems += unknown_problems([*file.nics, *file.accelerators], ports, "unit.port")
    if file.affinity is not None:
        problems += unknown_problems(ports, file.affinity, "unit.affinity")
        problems += _length_problems(file.affinity, file.accelerators)
    return problems


def _length_problems(affinity: tuple[str, ...], accelerators: tuple[str, ...]) -> list[Problem]:
    if len(affinity) == len(accelerators):
        return []
    return [
        Problem(
            key="unit.affinity",
            found=f"{len(affinity)} entries",
            rule=f"has the port of each of the {len(accelerators)} accelerators",
            fix="give one name for each, or leave the list out",
        )
    ]


def _bandwidth(file: GraphFile, port: PortFile, context: Context) -> float:
    """Return bytes/s of a port's cable that large messages achieve."""
    key = "unit.port.bandwidth"
    if port.device in file.accelerators:
        return float(known(port.bandwidth, context.scale_up_bandwidth, key))
    return float(known(port.bandwidth, context.nic_bandwidth, key) * context.nic_efficiency)


def _latency(file: GraphFile, port: PortFile, context: Context) -> float:
    own = 0.0 if port.device in file.accelerators else context.cable_latency
    return float(known(port.latency, own, "unit.port.latency"))
