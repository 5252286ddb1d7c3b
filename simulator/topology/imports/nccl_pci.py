"""The PCIe devices of NCCL's XML, from the processor down."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from simulator.topology.graph import Cable, DeviceKind
from simulator.topology.imports.link_rates import slot_latency
from simulator.topology.imports.nccl_node import FoundAccelerator, FoundNic, Node
from simulator.topology.imports.records import ImportedNic
from simulator.topology.imports.sockets import NCCL_SOCKETS, cpu_name, nccl_assumes
from simulator.topology.imports.xml_tree import Element
from simulator.units import BITS_PER_BYTE, GB

GIGABITS_A_LANE = {2.5: 1.5, 5.0: 3.0, 8.0: 6.0, 16.0: 12.0, 32.0: 24.0, 64.0: 48.0}
"""Gb/s of one PCIe lane, one direction, by its GT/s.

Source: NCCL, src/graph/topo.cc, kvDictPciGen (in units of 100 Mb/s)."""
UNKNOWN_SPEED, UNKNOWN_WIDTH = 8.0, 16
"""GT/s and lanes of a link that does not say; from the same place."""
INSIDE = 5000 * GB
"""Bytes/s inside one device, which limits nothing. Source: NCCL, src/graph/topo.h, LOC_BW."""
_MEGABIT = 1e6 / BITS_PER_BYTE
_SPEED = re.compile(r"(\d+(?:\.\d+)?)\s*GT/s.*")
_DISPLAY, _NETWORK = "0x03", "0x02"
"""PCI classes. Files that are written by hand name classes only."""
_BUS = re.compile(r"[0-9a-fA-F]{1,8}(:[0-9a-fA-F]{1,2}){1,2}(\.[0-9a-fA-F])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """Where a device hangs: the device above it, the host's prefix, and bytes/s of its link."""

    parent: str
    prefix: str
    rate: float = INSIDE


def add_cpu(node: Node, cpu: Element, prefix: str) -> None:
    """Add a NUMA node and the devices below it."""
    number = cpu.get("numaid") or str(len(node.sockets.get(prefix, ())))
    name = node.add(f"{prefix}numa{number}", DeviceKind.HOST, cpu)
    node.sockets.setdefault(prefix, []).append((name, _socket_rate(node, cpu, prefix)))
    slot = _Slot(parent=name, prefix=prefix)
    for child in cpu.children:
        if child.name == "pci":
            _add_pci(node, child, slot)
        elif child.name == "nic":
            _add_nets(node, child, slot)


def _socket_rate(node: Node, cpu: Element, prefix: str) -> float:
    """Return bytes/s from a NUMA node to another one, as an option or NCCL says."""
    if node.options.sockets is not None:
        return node.options.sockets
    name = cpu_name(cpu.attributes)
    if not name:
        rule, fix = "is no processor that NCCL knows", f"--socket-bandwidth; {nccl_assumes()}"
        node.wrong(cpu, rule, found=cpu.get("vendor") or cpu.get("arch"), fix=fix)
        return INSIDE
    if len(node.sockets.get(prefix, ())) == 1:
        text = f"{NCCL_SOCKETS[name] / GB:g} GB/s between NUMA nodes, as NCCL takes {name} to have"
        node.note(cpu, text)
    return NCCL_SOCKETS[name]


def _add_pci(node: Node, pci: Element, above: _Slot) -> None:
    """Add a PCIe device: accelerators, a NIC, or a switch and what is below it."""
    bus, kind = pci.get("busid"), pci.get("class")
    if not _BUS.fullmatch(bus):
        node.wrong(pci, "busid must be as in 0000:1a:00.0", found=repr(bus))
        return
    slot = replace(above, rate=_rate(node, pci))
    accelerators = [child for child in pci.children if child.name == "gpu"]
    cards = [child for child in pci.children if child.name == "nic"]
    below = [child for child in pci.children if child.name == "pci"]
    if accelerators or (kind.startswith(_DISPLAY) and not below):
        for element in accelerators or [pci]:
            _add_accelerator(node, element, pci, slot)
    elif cards or (kind.startswith(_NETWORK) and not below):
        for element in cards or [pci]:
            _add_nets(node, element, slot)
    elif below:
        _add_switch(node, pci, below, slot)


def _add_switch(node: Node, pci: Element, below: list[Element], slot: _Slot) -> None:
    name = node.add(f"{slot.prefix}pcie-{pci.get('busid')}", DeviceKind.SWITCH, pci)
    node.switches[name] = pci
    node.cables.append(Cable(one=name, other=slot.parent, bandwidth=slot.rate))
    widest = 0.0
    for child in below:
        first = len(node.cables)
        _add_pci(node, child, _Slot(parent=name, prefix=slot.prefix))
        widest = max([widest, *(c.bandwidth for c in node.cables[first:] if c.other == name)])
    if slot.rate < widest:
        text = (
            f"the link above {pci.get('busid')} has {slot.rate / GB:g} GB/s, less than a device "
            f"below it ({widest / GB:g} GB/s): a virtual bridge may say what no hardware has"
        )
        node.note(pci, text)


def _add_accelerator(node: Node, element: Element, pci: Element, slot: _Slot) -> None:
    place, prefix = len(node.accelerators), slot.prefix
    own = sum(found.name.startswith(f"{prefix}gpu") for found in node.accelerators)
    number = node.number(element, "dev", own)
    rank = node.number(element, "rank", number)
    name = node.add(f"{prefix}gpu{number}", DeviceKind.ACCELERATOR, element)
    node.by_bus.setdefault((prefix, pci.get("busid").lower()), name)
    latency = slot_latency(node.options)
    node.cables.append(Cable(one=name, other=slot.parent, bandwidth=slot.rate, latency=latency))
    node.accelerators.append(
        FoundAccelerator(name=name, element=element, pci=pci, order=(rank or 0, place))
    )


def _add_nets(node: Node, nic: Element, slot: _Slot) -> None:
    """Add the ports of one card; several hang on a switch of their own, behind one PCIe link."""
    nets = [child for child in nic.children if child.name == "net" and _is_used(child)]
    if nic.name == "pci":
        nets = [nic]
    if len(nets) > 1:
        card = node.add(f"{slot.prefix}card{nic.line}", DeviceKind.SWITCH, nic)
        node.cables.append(Cable(one=card, other=slot.parent, bandwidth=slot.rate))
        slot = replace(slot, parent=card, rate=INSIDE)
    for net in nets:
        _add_net(node, net, slot)


def _add_net(node: Node, net: Element, slot: _Slot) -> None:
    name = net.get("name") or f"nic{len(node.nics)}"
    if f"{slot.prefix}{name}" in node.devices:
        name = f"{name}:{net.get('port')}"
    device = node.add(f"{slot.prefix}{name}", DeviceKind.NIC, net)
    node.cables.append(Cable(one=device, other=slot.parent, bandwidth=slot.rate))
    if not node.options.nics or name in node.options.nics:
        place = len(node.nics)
        found = ImportedNic(name=device, bandwidth=_line_rate(node, net))
        order = (node.number(net, "dev", place) or 0, place)
        node.nics.append(FoundNic(nic=found, order=order))


def _is_used(net: Element) -> bool:
    """Return whether NCCL uses a port: one has a number, and is not fused into another one."""
    return bool(net.get("dev")) and net.get("net") != "0"


def _line_rate(node: Node, net: Element) -> float | None:
    """Return bytes/s of a port, one direction; None where the file does not say."""
    speed = node.number(net, "speed")
    if speed is None or speed <= 0:
        return None
    return speed * _MEGABIT


def _rate(node: Node, pci: Element) -> float:
    """Return bytes/s of the link above a PCIe device, one direction, as NCCL takes it to have."""
    width = node.number(pci, "link_width") or 0
    text = pci.get("link_speed")
    match = _SPEED.fullmatch(text)
    speed = float(match[1]) if match else None
    if width > 0 and speed in GIGABITS_A_LANE:
        return GIGABITS_A_LANE[speed] * width * GB / BITS_PER_BYTE
    width = width if width > 0 else UNKNOWN_WIDTH
    speed = speed if speed in GIGABITS_A_LANE else UNKNOWN_SPEED
    said = f"{text or 'no speed'} x {pci.get('link_width') or 'no width'}"
    node.note(pci, f"{pci.get('busid')} says {said}; {speed:g} GT/s x {width}, as NCCL takes it")
    return GIGABITS_A_LANE[speed] * width * GB / BITS_PER_BYTE
