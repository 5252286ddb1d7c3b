"""A node from its matrix of distances: a PCIe tree below each socket, and the NVLinks across it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from simulator.errors import InputError, Problem
from simulator.topology.graph import Cable, DeviceKind
from simulator.topology.imports.link_rates import (
    SWITCH,
    Wiring,
    generation,
    nvlink_wiring,
    slot_latency,
)
from simulator.topology.imports.matrix import Distance, Matrix
from simulator.topology.imports.nearest_nic import nearest_nics
from simulator.topology.imports.records import ImportedNic, ImportedUnit, ImportOptions, Note
from simulator.topology.imports.sockets import join_sockets, nccl_assumes
from simulator.units import GB

_FIRST = re.compile(r"[,-]")
"""Between the parts of a list of NUMA nodes such as "0,3-9"."""
Devices = dict[str, DeviceKind]


def unit_of_matrix(
    matrix: Matrix, where: str, options: ImportOptions
) -> tuple[ImportedUnit, list[Note]]:
    """Return the node that a matrix describes, and what was decided on the way.

    Devices that are `PIX` apart share a PCIe switch, those `PXB` apart an upper one; a switch, or
    a device without one, has one cable to its socket, as wide as the profile says PCIe is. `PHB`
    and `NODE` both mean the socket: nothing says that a host bridge is narrower than what is
    plugged into it. `SYS` crosses the cable between sockets.

    Raises:
        InputError: the file needs a bandwidth that no profile or option says.
    """
    nics, notes = _network_cards(matrix, options, where)
    kept = [*range(matrix.accelerators), *nics]
    devices, cables = _tree(matrix, kept, where, options)
    if matrix.links:
        wiring = _wiring(matrix, where, options)
        latency = options.profile.node.scale_up.latency if options.profile else 0.0
        more, joined = _nvlinks(matrix, wiring, latency)
        devices, cables = {**devices, **more}, [*cables, *joined]
        notes.append(_wiring_note(wiring))
    names = matrix.names
    unit = ImportedUnit(
        devices=tuple(devices.items()),
        cables=tuple(cables),
        accelerators=names[: matrix.accelerators],
        nics=tuple(ImportedNic(name=names[nic]) for nic in nics),
        affinity=_affinity(matrix, nics),
    )
    return unit, [*notes, *_contradictions(matrix)]


def _network_cards(
    matrix: Matrix, options: ImportOptions, where: str
) -> tuple[list[int], list[Note]]:
    """Return the NICs that belong to the network: those named, or those nearest to accelerators.

    A node also has cards for storage and management. Where some NICs are below a host bridge with
    an accelerator, the others are left out, with a note.
    """
    cards = range(matrix.accelerators, len(matrix.names))
    if options.nics:
        return _named(matrix, options.nics, where), []
    near = [card for card in cards if _nearest(matrix, card) <= Distance.PHB]
    left = [matrix.names[card] for card in cards if near and card not in near]
    if not left:
        return list(cards), []
    text = f"left out {', '.join(left)}: no accelerator is as near to them as to the other NICs"
    return near, [Note(text=f"{text}; --nics names the cards of the network")]


def _named(matrix: Matrix, wanted: tuple[str, ...], where: str) -> list[int]:
    cards = matrix.names[matrix.accelerators :]
    unknown = [name for name in wanted if name not in cards]
    if unknown:
        rule, fix = "the file has no such NIC", ", ".join(cards) or "leave --nics out"
        raise InputError(
            *(Problem(where=where, key="--nics", found=n, rule=rule, fix=fix) for n in unknown)
        )
    return [matrix.names.index(name, matrix.accelerators) for name in dict.fromkeys(wanted)]


def _nearest(matrix: Matrix, card: int) -> Distance:
    far = [matrix.distance(gpu, card) or Distance.SYS for gpu in range(matrix.accelerators)]
    return min(far)


def _affinity(matrix: Matrix, nics: list[int]) -> tuple[str, ...]:
    far = [
        [int(matrix.distance(gpu, nic) or Distance.SYS) for nic in nics]
        for gpu in range(matrix.accelerators)
    ]
    return tuple(matrix.names[nics[choice]] for choice in nearest_nics(far)) if nics else ()


def _tree(
    matrix: Matrix, kept: list[int], where: str, options: ImportOptions
) -> tuple[Devices, list[Cable]]:
    rate, latency = _pcie_rate(where, options), slot_latency(options)
    devices: Devices = {}
    cables: list[Cable] = []

    def cable(child: str, parent: str) -> None:
        slot = latency if devices[child] is DeviceKind.ACCELERATOR else 0.0
        cables.append(Cable(one=child, other=parent, bandwidth=rate, latency=slot))

    sockets = _groups(matrix, kept, Distance.NODE)
    for socket, members in zip(_socket_names(matrix, sockets), sockets, strict=True):
        devices[socket] = DeviceKind.HOST
        for upper in _groups(matrix, members, Distance.PXB):
            lower = _groups(matrix, upper, Distance.PIX)
            parent = socket
            if len(lower) > 1:
                parent = _switch(devices, cable, socket)
            for group in lower:
                leaf = _switch(devices, cable, parent) if len(group) > 1 else parent
                for member in group:
                    devices[matrix.names[member]] = _kind(matrix, member)
                    cable(matrix.names[member], leaf)
    hosts = [name for name, kind in devices.items() if kind is DeviceKind.HOST]
    return devices, [*cables, *join_sockets(hosts, _socket_rate(hosts, where, options))]


def _switch(devices: Devices, cable: Callable[[str, str], None], parent: str) -> str:
    """Add a PCIe switch below `parent` and return its name."""
    name = f"pcie{sum(kind is DeviceKind.SWITCH for kind in devices.values())}"
    devices[name] = DeviceKind.SWITCH
    cable(name, parent)
    return name


def _kind(matrix: Matrix, device: int) -> DeviceKind:
    return DeviceKind.ACCELERATOR if device < matrix.accelerators else DeviceKind.NIC


def _groups(matrix: Matrix, members: Iterable[int], within: Distance) -> list[list[int]]:
    """Return the devices that are `within` a distance of each other, in order.

    Accelerators of one NUMA node belong together from `NODE` on: the way between two that have
    NVLinks is not in the file, and virtual machines print SYS for all pairs.
    """
    group = {member: {member} for member in members}
    near = [pair for pair, distance in matrix.distances.items() if distance <= within]
    if within is Distance.NODE:
        first: dict[str, int] = {}
        near += [(first.setdefault(name, gpu), gpu) for gpu, name in matrix.domains.items()]
    for one, other in near:
        if one in group and other in group and group[one] is not group[other]:
            group[one] |= group[other]
            for member in group[other]:
                group[member] = group[one]
    distinct = {id(found): sorted(found) for found in group.values()}
    return sorted(distinct.values())


def _socket_names(matrix: Matrix, sockets: list[list[int]]) -> list[str]:
    """Return names of sockets: by the first NUMA node of an accelerator there, or by number."""
    domains = [
        next((matrix.domains[m] for m in members if m in matrix.domains), "") for members in sockets
    ]
    return [
        f"numa{_FIRST.split(domain)[0]}" if domain else f"socket{number}"
        for number, domain in enumerate(domains)
    ]


def _wiring(matrix: Matrix, where: str, options: ImportOptions) -> Wiring:
    pairs = matrix.accelerators * (matrix.accelerators - 1) // 2
    alike = len(matrix.links) == pairs and len(set(matrix.links.values())) == 1
    return nvlink_wiring(
        pair=max(matrix.links.values()),
        row=max(map(matrix.row, range(matrix.accelerators))),
        alike=alike,
        options=options,
        where=where,
    )


def _nvlinks(matrix: Matrix, wiring: Wiring, latency: float) -> tuple[Devices, list[Cable]]:
    """Return the NVSwitch, where there is one, and the cables of all NVLinks."""
    names = matrix.names
    if not wiring.switched:
        return {}, [
            Cable(
                one=names[one],
                other=names[other],
                bandwidth=count * wiring.rate,
                latency=latency,
            )
            for (one, other), count in sorted(matrix.links.items())
        ]
    rate = max(matrix.links.values()) * wiring.rate
    return {SWITCH: DeviceKind.SWITCH}, [
        Cable(one=name, other=SWITCH, bandwidth=rate, latency=latency / 2)
        for name in names[: matrix.accelerators]
    ]


def _wiring_note(wiring: Wiring) -> Note:
    which = generation(wiring.rate)
    way = "to a switch" if wiring.switched else "from accelerator to accelerator"
    text = f"links lead {way}, {wiring.rate / GB:g} GB/s each"
    return Note(text=f"{text} ({which})" if which else text)


def _contradictions(matrix: Matrix) -> list[Note]:
    """Return a note where distances are no tree: near to a third device, but not to each other."""
    for within in (Distance.PIX, Distance.PXB, Distance.NODE):
        groups = _groups(matrix, range(len(matrix.names)), within)
        group = {member: number for number, members in enumerate(groups) for member in members}
        for (one, other), distance in matrix.distances.items():
            if group[one] == group[other] and distance > within:
                whole = "NUMA node" if within is Distance.NODE else "PCIe switch"
                names = f"{matrix.names[one]} and {matrix.names[other]}"
                text = (
                    f"{names} are {distance.name} apart, yet belong to one {whole}, as others say"
                )
                return [Note(text=f"{text}; the topology has them there")]
    return []


def _pcie_rate(where: str, options: ImportOptions) -> float:
    if options.profile is None:
        rule = "says how near devices are over PCIe, and not how fast PCIe is"
        fix = "--profile with the name of the machine"
        raise InputError(Problem(where=where, rule=rule, fix=fix))
    return float(options.profile.node.host.pcie_bandwidth)


def _socket_rate(hosts: list[str], where: str, options: ImportOptions) -> float:
    if options.sockets is not None or len(hosts) == 1:
        return options.sockets or 0.0
    rule = "has several NUMA nodes, and nothing says how fast the way between them is"
    found, fix = f"{len(hosts)}: {', '.join(hosts)}", f"--socket-bandwidth; {nccl_assumes()}"
    raise InputError(Problem(where=where, found=found, rule=rule, fix=fix))
