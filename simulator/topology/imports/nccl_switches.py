"""PCIe switches that show themselves as two levels and are one."""

from __future__ import annotations

from dataclasses import replace

from simulator.topology.imports.nccl_node import Node
from simulator.topology.imports.xml_tree import Element

_BROADCOM_GEN4 = (("0x1000", "0xc010", "0x1000", "0xa"),) * 2
_BROADCOM_GEN5 = (("0x1000", "0xc030", "0x1000", "0x0"), ("0x1000", "0xc030", "0x1000", "0x1"))
"""Vendor, device, subsystem vendor, and the highest digit of the subsystem device, of the upper and
the lower level. Source: NCCL, src/graph/topo.cc, getBcmGen and ncclTopoFlattenBcmSwitches: "they're
supposed to sustain full BW across all ports"."""
_TWO_LEVELS = (_BROADCOM_GEN4, _BROADCOM_GEN5)
_DIGIT = 0x1000


def flatten_switches(node: Node) -> None:
    """Join the lower level of such switches to the upper one; the link between is no link."""
    upper_of: dict[str, str] = {}
    for cable in node.cables:
        lower, upper = node.switches.get(cable.one), node.switches.get(cable.other)
        if lower is not None and upper is not None and _is_one(upper, lower):
            upper_of[cable.one] = upper_of.get(cable.other, cable.other)
    if not upper_of:
        return
    for name in upper_of:
        del node.devices[name], node.switches[name]
    node.cables = [
        replace(
            cable,
            one=upper_of.get(cable.one, cable.one),
            other=upper_of.get(cable.other, cable.other),
        )
        for cable in node.cables
        if cable.one not in upper_of
    ]


def _is_one(upper: Element, lower: Element) -> bool:
    return any(
        _signature(upper) == _exact(high) and _signature(lower) == _exact(low)
        for high, low in _TWO_LEVELS
    )


def _exact(signature: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in signature)


def _signature(pci: Element) -> tuple[int, ...]:
    keys = ("vendor", "device", "subsystem_vendor", "subsystem_device")
    *ids, last = (_hexadecimal(pci.get(key)) for key in keys)
    return (*ids, last // _DIGIT if last >= 0 else -1)


def _hexadecimal(text: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        return -1
