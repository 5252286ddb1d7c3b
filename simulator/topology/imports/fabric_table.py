"""The network of a file as tables of a topology file, with the unit of the profile if need be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from simulator.errors import InputError, Problem
from simulator.hardware.profile import Profile
from simulator.topology.build import build_topology
from simulator.topology.context import context_of
from simulator.topology.imports.quantities import Table, cable_tables, quantity, shown
from simulator.topology.imports.records import ImportedFabric, ImportOptions, Plug
from simulator.topology.profile_table import profile_table
from simulator.topology.topology_file import parse_topology
from simulator.units import Dimension

_CARDS = 2
"""NICs that a message from node to node passes."""


def with_fabric(fabric: ImportedFabric, where: str, table: Table, options: ImportOptions) -> Table:
    """Return the tables of a network, of its NICs, and of the unit where no file has one."""
    size = 1
    per_node = 1 + max((plug.port for plug in fabric.plugs), default=0)
    if "unit" in table:
        unit, ports = table["unit"], len(table["unit"].get("port", ()))
        _check_ports(ports, per_node, where)
    else:
        machine = _machine(options, where)
        size = _nodes_of_domain(machine, where, len(fabric.nodes))
        unit = dict(profile_table(machine, size)["unit"])
        ports = _ports_of_profile(unit, options) // size
    return {
        "unit": unit,
        "units": len(fabric.nodes) // size,
        **_nic_table(fabric.plugs, where),
        "fabric": {
            "kind": "graph",
            "switches": list(fabric.switches),
            "cable": cable_tables(fabric.cables),
            "attachment": _attachments(_fitted(fabric, per_node, ports), size, ports),
        },
    }


def _check_ports(ports: int, per_node: int, where: str) -> None:
    if ports != per_node:
        rule = f"a node of the network has {per_node} ports, and the node has {ports} NICs"
        fix = "--nics with the cards of the network, or a profile with as many NICs"
        raise InputError(Problem(where=where, rule=rule, fix=fix))


def _ports_of_profile(unit: Table, options: ImportOptions) -> int:
    """Return the ports of the profile's unit; one of them may be several NICs."""
    assert options.profile is not None, "the unit was taken from it"
    file = parse_topology({"title": options.profile.name, "unit": unit}, options.profile.name)
    return build_topology(file, context_of(options.profile)).port_count


def _fitted(fabric: ImportedFabric, per_node: int, ports: int) -> ImportedFabric:
    """Return a fabric in which each port of a node stands for as many of its NICs."""
    if ports == per_node:
        return fabric
    chosen: dict[int, list[int]] = {}
    for port in range(ports):
        chosen.setdefault(port * per_node // ports, []).append(port)
    plugs = tuple(
        replace(plug, port=port) for plug in fabric.plugs for port in chosen.get(plug.port, ())
    )
    return replace(fabric, plugs=plugs)


def _machine(options: ImportOptions, where: str) -> Profile:
    """Return the profile that says what a node is."""
    if options.profile is None:
        rule = "draws a network, and nothing says what a node is"
        fix = "--profile, or a file that describes a node beside it"
        raise InputError(Problem(where=where, rule=rule, fix=fix))
    return options.profile


def _nodes_of_domain(profile: Profile, where: str, nodes: int) -> int:
    """Return the nodes of one unit of the profile: those of a scale-up domain."""
    width, domain = profile.node.accelerators, profile.node.scale_up.domain_size
    if domain < width:
        rule = (
            f"a node of {profile.name} is {width // domain} domains, which are units of their own"
        )
        fix = "a file that describes a node, such as nvidia-smi topo -m"
        raise InputError(Problem(where=where, rule=rule, fix=fix))
    size = domain // width
    if nodes % size:
        rule = f"a unit of {profile.name} is {size} nodes, and a cluster is whole units"
        fix = f"{nodes // size * size or size} nodes"
        raise InputError(Problem(where=where, found=f"{nodes} nodes", rule=rule, fix=fix))
    return size


def _nic_table(plugs: Sequence[Plug], where: str) -> Table:
    """Return the table of the NICs where the file says what their cables have."""
    rates = {plug.bandwidth for plug in plugs if plug.bandwidth is not None}
    latencies = {plug.latency for plug in plugs if plug.latency}
    if len(rates) > 1 or len(latencies) > 1:
        shown = ", ".join(shown(rate, Dimension.BANDWIDTH) for rate in sorted(rates)[:4])
        rule = "the cables of all NICs must be equal: all nodes of a topology are"
        raise InputError(Problem(where=where, found=shown, rule=rule))
    nic: Table = {}
    for rate in rates:
        nic |= quantity("bandwidth", rate)
    for latency in latencies:
        nic |= quantity("latency", _CARDS * latency, Dimension.TIME)
    return {"nic": nic} if nic else {}


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """A port of a unit."""

    unit: int
    port: int


def _attachments(fabric: ImportedFabric, size: int, per_node: int) -> list[Table]:
    """Return which ports of which units are plugged into each switch."""
    number = {name: place for place, name in enumerate(fabric.nodes)}
    places: dict[str, list[_Place]] = {}
    for plug in fabric.plugs:
        unit, inside = divmod(number[plug.node], size)
        place = _Place(unit, inside * per_node + plug.port)
        places.setdefault(plug.switch, []).append(place)
    rows = []
    for switch, plugged in places.items():
        units_of: dict[int, list[int]] = {}
        for place in sorted(plugged):
            units_of.setdefault(place.port, []).append(place.unit)
        alike: dict[tuple[int, ...], list[int]] = {}
        for port, units in units_of.items():
            alike.setdefault(tuple(units), []).append(port)
        rows += [
            {"switch": switch, "units": _ranges(units), "ports": _ranges(ports)}
            for units, ports in alike.items()
        ]
    return rows


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers as a text.

    >>> _ranges([0, 1, 2, 7])
    '0-2,7'
    """
    parts = []
    for _, run in groupby(enumerate(sorted(numbers)), key=lambda pair: pair[1] - pair[0]):
        inside = [number for _, number in run]
        parts.append(str(inside[0]) if len(inside) == 1 else f"{inside[0]}-{inside[-1]}")
    return ",".join(parts)
