"""The nodes of an edge list and the network between them; all nodes must be equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulator.errors import InputError, Problem
from simulator.topology.imports.edge_lines import Edge
from simulator.topology.imports.edge_names import BETWEEN, cables_of, in_order, unit_of_edges
from simulator.topology.imports.records import ImportedFabric, ImportedUnit, Plug, at_line


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parted:
    """The edges of a list with nodes and a network: those in each node, its plugs, the rest."""

    inside: dict[str, list[Edge]]
    plugs: dict[str, dict[str, tuple[str, Edge]]]
    """Node -> NIC -> the switch at the other end of its cable."""
    between: list[Edge]


def cluster_of_edges(
    edges: Sequence[Edge], names: Sequence[str], where: str
) -> tuple[ImportedUnit, ImportedFabric | None]:
    """Return the node that all nodes of a list are, and the network between them."""
    parted = _parted(edges, where)
    nodes = in_order(parted.inside)
    first = nodes[0]
    problems = [
        problem for node in nodes[1:] for problem in _differences(parted, first, node, where)
    ]
    if problems:
        raise InputError(*problems)
    ports = in_order(parted.plugs.get(first, {}))
    own = {name: parted.plugs[first][name][1].bandwidth for name in ports}
    unit = unit_of_edges(parted.inside[first], own)
    switches = in_order(name for name in names if BETWEEN not in name)
    if not switches:
        return unit, None
    plugs = tuple(
        Plug(
            node=node,
            port=number,
            switch=parted.plugs[node][port][0],
            bandwidth=parted.plugs[node][port][1].bandwidth,
            latency=parted.plugs[node][port][1].latency,
        )
        for node in nodes
        for number, port in enumerate(ports)
    )
    return unit, ImportedFabric(
        nodes=tuple(nodes), switches=tuple(switches), cables=cables_of(parted.between), plugs=plugs
    )


def _parted(edges: Sequence[Edge], where: str) -> _Parted:
    """Part the edges by whether their ends are in a node.

    Raises:
        InputError: a cable leads from node to node, or two lead from one port.
    """
    parted = _Parted(inside={}, plugs={}, between=[])
    problems = []
    for edge in edges:
        (one, _, near), (other, _, far) = (
            name.rpartition(BETWEEN) for name in (edge.one, edge.other)
        )
        if one and one == other:
            local = Edge(
                one=near,
                other=far,
                bandwidth=edge.bandwidth,
                latency=edge.latency,
                line=edge.line,
            )
            parted.inside.setdefault(one, []).append(local)
        elif one and other:
            rule = "a cable from node to node passes no switch"
            problems.append(at_line(where, edge.line, rule, fix="name a switch between them"))
        elif one or other:
            node, port, switch = (one, near, edge.other) if one else (other, far, edge.one)
            plugs = parted.plugs.setdefault(node, {})
            if port in plugs:
                rule = f"{node}/{port} is plugged in at line {plugs[port][1].line} already"
                problems.append(at_line(where, edge.line, rule))
            plugs[port] = (switch, edge)
        else:
            parted.between.append(edge)
    problems += [
        Problem(where=where, key=node, rule="has a port and no device that it leads to")
        for node in parted.plugs
        if node not in parted.inside
    ]
    if problems:
        raise InputError(*problems)
    return parted


def _differences(parted: _Parted, first: str, node: str, where: str) -> list[Problem]:
    """Return a problem where a node is not as the first one."""
    own, other = ({_shape(edge) for edge in parted.inside[name]} for name in (first, node))
    wrong = min(
        (edge for edge in parted.inside[node] if _shape(edge) not in own),
        default=None,
        key=lambda edge: edge.line,
    )
    plugs, more = (
        {port: edge.bandwidth for port, (_, edge) in parted.plugs.get(name, {}).items()}
        for name in (first, node)
    )
    if own == other and plugs == more:
        return []
    rule = f"must be as {first} is: all nodes of a topology are equal"
    fix = f"the cables of {first}, or one topology file for each kind of node"
    if wrong is not None:
        return [at_line(where, wrong.line, f"{node} {rule}", fix=fix)]
    return [Problem(where=where, key=node, rule=rule, fix=fix)]


def _shape(edge: Edge) -> tuple[str, str, float, float]:
    one, other = sorted((edge.one, edge.other))
    return one, other, edge.bandwidth, edge.latency
