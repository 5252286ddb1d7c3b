"""The network of an edge list without accelerators: its nodes are those of a profile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from simulator.errors import InputError, Problem
from simulator.topology.imports.edge_lines import Edge
from simulator.topology.imports.edge_names import cables_of, in_order
from simulator.topology.imports.records import ImportedFabric, ImportOptions, Plug, at_line

_NODE = re.compile(r"(node|host|server|machine|worker|unit|\w*node)[-_.]?\d+", re.I)


def fabric_of_edges(
    edges: Sequence[Edge], names: Sequence[str], where: str, options: ImportOptions
) -> ImportedFabric:
    """Return the network of a list without accelerators; each node has the NICs of the profile."""
    nodes = in_order(name for name in names if _NODE.fullmatch(name))
    ends = frozenset(nodes)
    if not nodes:
        rule = "names no accelerator (gpu0) and no node (node0)"
        raise InputError(Problem(where=where, rule=rule, fix="gpu0 nvswitch 450GB/s"))
    nic = options.profile.node.nic if options.profile else None
    if nic is None:
        rule, fix = (
            "nothing says how many NICs a node has",
            "--profile with a machine that has some",
        )
        raise InputError(Problem(where=where, rule=rule, fix=fix))
    direct = [edge for edge in edges if edge.one in ends and edge.other in ends]
    if direct:
        rule, fix = "a cable from node to node passes no switch", "name a switch between them"
        raise InputError(*(at_line(where, e.line, rule, fix=fix) for e in direct))
    above: dict[str, list[tuple[str, float, float]]] = {}
    for edge in edges:
        for node, switch in ((edge.one, edge.other), (edge.other, edge.one)):
            if node in ends:
                above.setdefault(node, []).append((switch, edge.bandwidth, edge.latency))
    plugs = [plug for node in nodes for plug in _plugs(node, above[node], nic.per_node)]
    return ImportedFabric(
        nodes=tuple(nodes),
        switches=tuple(in_order(name for name in names if name not in ends)),
        cables=cables_of(e for e in edges if e.one not in ends and e.other not in ends),
        plugs=tuple(plugs),
    )


def _plugs(node: str, above: Sequence[tuple[str, float, float]], per_node: int) -> list[Plug]:
    """Return the ports of a node, spread evenly over its cables, which they share."""
    count = min(len(above), per_node)
    chosen = [port * count // per_node for port in range(per_node)]
    shared = Counter(chosen)
    return [
        Plug(
            node=node,
            port=port,
            switch=above[place][0],
            bandwidth=above[place][1] / shared[place],
            latency=above[place][2],
        )
        for port, place in enumerate(chosen)
    ]
