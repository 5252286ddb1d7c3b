"""What files say, put together as the table of one topology file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from simulator.errors import InputError, Problem
from simulator.topology.graph import DeviceKind
from simulator.topology.imports.fabric_table import with_fabric
from simulator.topology.imports.nics_of_profile import with_nics
from simulator.topology.imports.quantities import Table, cable_tables, quantity
from simulator.topology.imports.records import Imported, ImportedUnit, ImportOptions, Note
from simulator.topology.profile_table import profile_table

_LISTS = {
    DeviceKind.ACCELERATOR: "accelerators",
    DeviceKind.NIC: "nics",
    DeviceKind.SWITCH: "switches",
    DeviceKind.HOST: "hosts",
}


def topology_table(
    imported: Sequence[Imported],
    options: ImportOptions,
    *,
    title: str,
    read_on: date,
    nodes: int | None = None,
) -> tuple[Table, list[Note]]:
    """Return the table of a topology file, and notes on what comes from the profile.

    One file says what a node is, another one what joins nodes; the profile says what none does,
    and the network of `nodes` nodes where no file has one.

    Raises:
        InputError: two files describe nodes or two networks, or they do not fit together.
    """
    unit = _only([found for found in imported if found.unit], "a node")
    fabric = _only([found for found in imported if found.fabric], "a network")
    table: Table = {"title": title}
    if options.profile is not None:
        table["profile"] = options.profile_name or options.profile.name
    notes: list[Note] = []
    if unit is not None and unit.unit is not None:
        whole, more = with_nics(unit.unit, options)
        notes += more
        table["unit"] = _unit_table(whole)
    if fabric is not None and fabric.fabric is not None:
        table |= with_fabric(fabric.fabric, fabric.where, table, options)
    elif nodes is not None:
        table |= _fabric_of_profile(options, nodes)
    else:
        notes.append(Note(text="no file draws a network, so the topology is one unit"))
    table["source"] = [_source(found, read_on) for found in imported]
    return table, notes


def _only(found: Sequence[Imported], what: str) -> Imported | None:
    if len(found) <= 1:
        return found[0] if found else None
    rule = f"describes {what}, as {found[0].where} does; all nodes of a topology are equal"
    raise InputError(
        *(Problem(where=each.where, rule=rule, fix="one of these files") for each in found[1:])
    )


def _source(found: Imported, read_on: date) -> Table:
    parts = [name for name, part in (("unit", found.unit), ("fabric", found.fabric)) if part]
    reference = f"{found.format}: {Path(found.where).name}"
    return {"what": ", ".join(parts), "reference": reference, "read_on": read_on}


def _unit_table(unit: ImportedUnit) -> Table:
    lists: Table = {
        key: [name for name, kind in unit.devices if kind is wanted]
        for wanted, key in _LISTS.items()
    }
    table: Table = {"kind": "graph", **{key: names for key, names in lists.items() if names}}
    table["accelerators"] = list(unit.accelerators)
    table["cable"] = cable_tables(unit.cables)
    if unit.nics:
        table["port"] = [
            {"device": nic.name, **quantity("bandwidth", nic.bandwidth)} for nic in unit.nics
        ]
    if unit.affinity:
        table["affinity"] = list(unit.affinity)
    return table


def _fabric_of_profile(options: ImportOptions, nodes: int) -> Table:
    """Return the network that the profile has for so many nodes."""
    if options.profile is None:
        fix = "--profile with the name of the machine"
        raise InputError(Problem(key="--nodes", rule="the network is the profile's", fix=fix))
    fabric = profile_table(options.profile, nodes).get("fabric")
    return {"units": nodes, **({"fabric": fabric} if fabric else {})}
