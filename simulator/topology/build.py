"""A topology from its file or from a profile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Problem
from simulator.hardware.profile import Profile, load_profile
from simulator.topology.checks import check_topology
from simulator.topology.context import Context, context_of, with_nic
from simulator.topology.profile_table import profile_table
from simulator.topology.registry import FABRICS, UNITS
from simulator.topology.topology import Fabric, Topology, Unit
from simulator.topology.topology_file import (
    TopologyFile,
    located,
    parse_topology,
    read_topology,
)

MAX_ACCELERATORS = 10**6
"""As of a scenario: no cluster is larger, and links of more would not fit in memory."""


def load_topology(
    path: Path | str, context: Context | None = None, units: int | None = None
) -> Topology:
    """Return the topology in a TOML file.

    `context` None is that of the profile that the file names, and `units` None as many as it says.

    Raises:
        InputError: with one problem for everything wrong in the file.
    """
    file = read_topology(path)
    return build_topology(file, own_context(file) if context is None else context, units)


def own_context(file: TopologyFile) -> Context:
    """Return what the profile that a topology's file names says; nothing where it names none.

    Raises:
        InputError: there is no such profile.
    """
    if file.profile is None:
        return Context()
    return context_of(load_profile(file.profile, relative_to=Path(file.where).parent))


def topology_of_profile(profile: Profile, nodes: int) -> Topology:
    """Return the topology that a profile's `[node]` and `[fabric]` describe.

    Raises:
        InputError: so many nodes are not whole units, or the profile has no NIC to join them.
    """
    file = parse_topology(profile_table(profile, nodes), profile.name)
    return topology_of_nodes(file, context_of(profile), nodes)


def topology_of_nodes(file: TopologyFile, context: Context, nodes: int) -> Topology:
    """Return the topology of a file for a cluster of so many nodes.

    Raises:
        InputError: they are not whole units, or anything is wrong in the file.
    """
    return build_topology(file, context, units_of_nodes(file, context, nodes))


def units_of_nodes(file: TopologyFile, context: Context, nodes: int) -> int:
    """Return how many units so many nodes are.

    Raises:
        InputError: it is no whole number; or the unit cannot be built.
    """
    width = len(_unit(file, context).accelerators)
    accelerators = nodes * (width if context.accelerators is None else context.accelerators)
    if accelerators % width:
        raise InputError(
            Problem(
                where=file.where,
                key="unit",
                found=f"{accelerators} accelerators on {nodes} nodes",
                rule=f"a unit has {width} accelerators, and a cluster is whole units",
                fix=f"take {_whole(accelerators, width)} accelerators, or other units",
            )
        )
    return accelerators // width


def build_topology(file: TopologyFile, context: Context, units: int | None = None) -> Topology:
    """Return the topology of a file, of `units` units (None: of as many as the file says).

    Raises:
        InputError: with one problem for everything that does not fit together.
    """
    count = units or file.units or 1
    unit = _unit(file, context)
    if count * len(unit.accelerators) > MAX_ACCELERATORS:
        raise InputError(_too_many(file.where, count, len(unit.accelerators)))
    topology = Topology(
        title=file.title,
        unit=unit,
        units=count,
        fabric=_fabric(file, count, unit, with_nic(context, file.nic)),
    )
    with _named(file.where):
        check_topology(topology)
    return topology


def _unit(file: TopologyFile, context: Context) -> Unit:
    with _named(file.where):
        return UNITS[file.unit.kind].build(file.unit.parameters, with_nic(context, file.nic))


def _fabric(file: TopologyFile, units: int, unit: Unit, context: Context) -> Fabric | None:
    if file.fabric is None:
        if units > 1:
            raise InputError(_no_fabric(file.where, units))
        return None
    if not len(unit.ports):
        raise InputError(_no_ports(file.where))
    parameters: Any = file.fabric.parameters
    with _named(file.where):
        return FABRICS[file.fabric.kind].build(parameters, units, unit, context)


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Add the name of the file to problems that builders find."""
    try:
        yield
    except InputError as error:
        raise InputError(*located(error.problems, where)) from error


def _too_many(where: str, units: int, width: int) -> Problem:
    return Problem(
        where=where,
        key="units",
        found=f"{units} units of {width} accelerators",
        rule=f"a topology has at most {MAX_ACCELERATORS} accelerators",
        fix=f"take {max(1, MAX_ACCELERATORS // width)} units",
    )


def _no_fabric(where: str, units: int) -> Problem:
    return Problem(
        where=where,
        key="fabric",
        found=f"{units} units",
        rule="nothing joins the units",
        fix='add a table such as [fabric] with kind = "fat-tree", or take 1 unit',
    )


def _no_ports(where: str) -> Problem:
    return Problem(
        where=where,
        key="unit",
        found="no port",
        rule="units have no NIC by which a fabric could join them",
        fix="add a [nic] table with per_node, bandwidth and latency, or name a profile with NICs",
    )


def _whole(accelerators: int, width: int) -> int:
    """Return the number of accelerators nearest to `accelerators` that are whole units."""
    below = accelerators // width * width
    return below if below and accelerators - below <= width / 2 else below + width
