"""A fabric as any switches joined by any cables: what importers write."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

import numpy as np
from pydantic import BeforeValidator, Field, WithJsonSchema

from simulator.errors import InputError, Problem
from simulator.files import FileRecord
from simulator.topology.checks import cable_problems, device_problems, unknown_problems
from simulator.topology.context import Context, known
from simulator.topology.fabrics.fabric_file import Count, FabricFile, finish, link_efficiency
from simulator.topology.graph import Cable, DeviceKind, IntArray, make_graph
from simulator.topology.topology import Fabric, Unit
from simulator.units import Bandwidth, Seconds

Name = Annotated[str, Field(min_length=1, max_length=64)]
_RANGE = re.compile(r"\s*(\d{1,6})(?:\s*-\s*(\d{1,6}))?\s*")
_MAX_UNITS = 10**6
_NOWHERE = -1


def _read_units(given: object) -> object:
    """Return the numbers in a text such as "0-3,8", or those in a list."""
    if not isinstance(given, str):
        return tuple(given) if isinstance(given, list) else given
    numbers: list[int] = []
    for part in given.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise ValueError('must be numbers and ranges, such as "0-31,40"')
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"the range {part.strip()} ends before it begins")
        numbers += range(first, last + 1)
    return tuple(numbers)


Units = Annotated[
    tuple[Annotated[int, Field(ge=0, lt=_MAX_UNITS)], ...],
    BeforeValidator(_read_units),
    WithJsonSchema({"type": "string", "examples": ["0-31,40"], "title": "numbers"}),
]


class FabricCableFile(FileRecord):
    """Cables between two switches, full duplex."""

    ends: tuple[Name, Name]
    """The two switches."""
    count: Count = 1
    """So many, in parallel."""
    bandwidth: Bandwidth | None = None
    """Nominal, of one cable and direction; that of a NIC by default."""
    latency: Seconds = 0.0
    """Of one message on it, besides the NIC's, which is that of the whole way."""


class AttachmentFile(FileRecord):
    """Ports that are plugged into one switch."""

    switch: Name
    units: Units
    """Numbers of units, the first is 0: a list, or a text such as "0-31,40". Those that a smaller
    cluster does not have are left out."""
    ports: Units | None = None
    """Numbers of their ports, the first is 0; by default all."""


class FabricGraphFile(FabricFile):
    """Switches by name, the cables between them, and the ports that are plugged into each."""

    switches: tuple[Name, ...] = Field(min_length=1)
    cable: tuple[FabricCableFile, ...] = ()
    attachment: tuple[AttachmentFile, ...] = Field(min_length=1)


def graph_fabric(file: FabricGraphFile, units: int, unit: Unit, context: Context) -> Fabric:
    """Return the fabric that a file draws.

    Raises:
        InputError: with all names, cables and ports that do not fit.
    """
    problems = _name_problems(file)
    if problems:
        raise InputError(*problems)
    number = {name: place for place, name in enumerate(file.switches)}
    attachment = _attachment(file, number, units, len(unit.ports))
    switches = [(name, DeviceKind.SWITCH) for name in file.switches]
    cables = _cables(file, context, link_efficiency(unit, context))
    return finish(file, make_graph(switches, cables), attachment, unit, context)


def _name_problems(file: FabricGraphFile) -> list[Problem]:
    wires = [Cable(one=c.ends[0], other=c.ends[1], bandwidth=1.0) for c in file.cable]
    problems = device_problems({"fabric.switches": file.switches})
    problems += cable_problems(file.switches, wires, "fabric.cable")
    for place, plug in enumerate(file.attachment):
        key = f"fabric.attachment.{place}.switch"
        problems += unknown_problems(file.switches, [plug.switch], key)
    return problems


def _cables(file: FabricGraphFile, context: Context, efficiency: float) -> Iterator[Cable]:
    for place, cable in enumerate(file.cable):
        key = f"fabric.cable.{place}.bandwidth"
        nominal = known(cable.bandwidth, context.nic_bandwidth, key)
        one, other = cable.ends
        for _ in range(cable.count):
            yield Cable(one=one, other=other, bandwidth=nominal * efficiency, latency=cable.latency)


def _attachment(file: FabricGraphFile, number: dict[str, int], units: int, ports: int) -> IntArray:
    """Return (units, ports) the switch of each port; each has exactly one."""
    found = np.full((units, ports), _NOWHERE, dtype=np.intp)
    problems: list[Problem] = []
    for place, plug in enumerate(file.attachment):
        key = f"fabric.attachment.{place}"
        columns = np.arange(ports) if plug.ports is None else np.array(plug.ports, dtype=np.intp)
        if columns.size and columns.max() >= ports:
            problems.append(_no_port(key, int(columns.max()), ports))
            continue
        rows = np.array([unit for unit in plug.units if unit < units], dtype=np.intp)
        here = np.ix_(rows, columns)
        again = found[here] != _NOWHERE
        if again.any() or len(set(plug.units)) < len(plug.units):
            problems.append(_twice(file, key, plug, found[here][again]))
        found[here] = number[plug.switch]
    loose = np.argwhere(found == _NOWHERE)
    if len(loose) and not problems:
        problems.append(_loose(loose, units))
    if problems:
        raise InputError(*problems)
    return found


def _no_port(key: str, port: int, ports: int) -> Problem:
    return Problem(
        key=f"{key}.ports",
        found=str(port),
        rule=f"a unit has ports 0 to {ports - 1}",
        fix=f"take one of them, {ports - 1} for the last",
    )


def _twice(file: FabricGraphFile, key: str, plug: AttachmentFile, before: IntArray) -> Problem:
    switch = file.switches[int(before[0])] if before.size else plug.switch
    return Problem(
        key=f"{key}.units",
        found=f"ports that are plugged into {switch} already",
        rule="a port is plugged into one switch",
        fix="name each unit once, or give the ports of each",
    )


def _loose(loose: np.ndarray, units: int) -> Problem:
    unit, port = (int(number) for number in loose[0])
    return Problem(
        key="fabric.attachment",
        found=f"{len(loose)} ports without a switch, the first is port {port} of unit {unit}",
        rule=f"each port of units 0 to {units - 1} is plugged into a switch",
        fix=f'add an [[fabric.attachment]] with units = "{unit}"',
    )
