"""What the devices of an edge list are, by their names, and a node of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from simulator.topology.graph import Cable, DeviceKind
from simulator.topology.imports.edge_lines import Edge
from simulator.topology.imports.records import ImportedNic, ImportedUnit

_KINDS = {
    DeviceKind.ACCELERATOR: re.compile(r"(gpu|accelerator|acc|tpu|npu|hpu|xpu|gcd|dcu)[-_.]?\d+"),
    DeviceKind.NIC: re.compile(r"(nic|mlx\d+_|hca|hfi|rdma|efa|ib|eth|ens|hsn|cxi|bnxt)[-_.]?\w*"),
    DeviceKind.HOST: re.compile(r"(cpu|socket|numa|host|root)[-_.]?\d*"),
}
"""What a device is, by its name; all others are switches."""
BETWEEN = "/"
"""Between the name of a node and that of a device in it: node3/gpu1."""
_NUMBERS = re.compile(r"(\d+)")


def kind_of(name: str) -> DeviceKind:
    """Return what a device is, by the last part of its name.

    >>> str(kind_of("node3/gpu1")), str(kind_of("mlx5_0")), str(kind_of("leaf0"))
    ('accelerator', 'nic', 'switch')
    """
    last = name.rpartition(BETWEEN)[2].lower()
    found = (kind for kind, pattern in _KINDS.items() if pattern.fullmatch(last))
    return next(found, DeviceKind.SWITCH)


def in_order(names: Iterable[str]) -> list[str]:
    """Return names sorted with their numbers by value, so that gpu10 comes after gpu9."""
    return sorted(
        names,
        key=lambda name: [
            (bool(part.isdigit()), int(part) if part.isdigit() else 0, part)
            for part in _NUMBERS.split(name)
        ],
    )


def cables_of(edges: Iterable[Edge]) -> tuple[Cable, ...]:
    """Return edges as cables."""
    return tuple(
        Cable(one=edge.one, other=edge.other, bandwidth=edge.bandwidth, latency=edge.latency)
        for edge in edges
    )


def unit_of_edges(edges: Sequence[Edge], nics: dict[str, float] | None = None) -> ImportedUnit:
    """Return the node that edges draw; `nics` are bytes/s of the cables of those plugged in."""
    names = in_order({name for edge in edges for name in (edge.one, edge.other)})
    cards = [name for name in names if kind_of(name) is DeviceKind.NIC]
    plugged = dict.fromkeys(cards) if nics is None else nics
    return ImportedUnit(
        devices=tuple((name, kind_of(name)) for name in names),
        cables=cables_of(edges),
        accelerators=tuple(name for name in names if kind_of(name) is DeviceKind.ACCELERATOR),
        nics=tuple(ImportedNic(name=name, bandwidth=plugged[name]) for name in in_order(plugged)),
        affinity=(),
    )
