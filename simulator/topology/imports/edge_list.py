"""An edge list, which is a node, a network, or a network of equal nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from simulator.topology.graph import DeviceKind
from simulator.topology.imports.edge_cluster import cluster_of_edges
from simulator.topology.imports.edge_lines import Edge, read_edges
from simulator.topology.imports.edge_names import BETWEEN, kind_of, unit_of_edges
from simulator.topology.imports.edge_network import fabric_of_edges
from simulator.topology.imports.records import Imported, ImportOptions, Note
from simulator.units import GB

FORMAT = "edge list"


def read_edge_list(text: str, where: str, options: ImportOptions) -> Imported:
    """Return the node or network that a list draws.

    Each edge is a cable, full duplex; the same two devices once more, in either direction, is one
    cable more, unless it is the other direction of a cable with the same numbers. Names say what a
    device is: gpu0 an accelerator, nic0 or mlx5_0 a NIC, cpu0 or numa0 a socket, all others
    switches. A list without accelerators draws a network, and its node0, node1, ... are nodes.
    Names such as node3/gpu1 draw both: then all nodes must be equal.

    Raises:
        InputError: with every line that cannot be read or does not fit.
    """
    edges, notes = _merged(read_edges(text, where))
    names = list(dict.fromkeys(name for edge in edges for name in (edge.one, edge.other)))
    inside = [name for name in names if BETWEEN in name]
    if any(kind_of(name) is DeviceKind.ACCELERATOR for name in inside):
        unit, fabric = cluster_of_edges(edges, names, where)
    elif any(kind_of(name) is DeviceKind.ACCELERATOR for name in names):
        unit, fabric = unit_of_edges(edges), None
    else:
        unit, fabric = None, fabric_of_edges(edges, names, where, options)
    return Imported(where=where, format=FORMAT, unit=unit, fabric=fabric, notes=tuple(notes))


def _merged(edges: Sequence[Edge]) -> tuple[list[Edge], list[Note]]:
    """Return one edge for each pair of devices, with the bandwidth of all its cables."""
    numbers: dict[tuple[str, str], list[Edge]] = {}
    for edge in edges:
        numbers.setdefault((edge.one, edge.other), []).append(edge)
    merged, notes, done = [], [], set[tuple[str, str]]()
    for (one, other), there in numbers.items():
        if (one, other) in done:
            continue
        done |= {(one, other), (other, one)}
        back = numbers.get((other, one), [])
        both_ways = Counter(map(_numbers, there)) == Counter(map(_numbers, back))
        cables = there if both_ways else [*there, *back]
        total = sum(edge.bandwidth for edge in cables)
        slowest = max(edge.latency for edge in cables)
        merged.append(
            Edge(one=one, other=other, bandwidth=total, latency=slowest, line=there[0].line)
        )
        if len(cables) > 1:
            text = f"{len(cables)} cables between {one} and {other}, {total / GB:g} GB/s together"
            notes.append(Note(line=cables[-1].line, text=text))
    return merged, notes


def _numbers(edge: Edge) -> tuple[float, float]:
    return edge.bandwidth, edge.latency
