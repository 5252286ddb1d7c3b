"""The TOML file of a topology: a unit, a fabric, and where their numbers come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, nearest, parse_record, read_toml
from simulator.hardware.profile import Source
from simulator.topology.context import NicFile
from simulator.topology.registry import FABRICS, UNITS, FabricKind, UnitKind

_KIND = "kind"


class TopologyTable(FileRecord):
    """The keys of the file; those of `[unit]` and `[fabric]` depend on their `kind`."""

    title: str = Field(min_length=1)
    """One line for reports."""
    profile: str | None = None
    """Machine whose numbers stand in for those left out, where no scenario names another."""
    units: int | None = Field(default=None, ge=1, le=10**6)
    """How many there are, where no scenario says how many nodes."""
    nic: NicFile | None = None
    """Left out, the profile's."""
    unit: dict[str, Any]
    """What repeats: its `kind` and the keys of that kind."""
    fabric: dict[str, Any] | None = None
    """What joins units: its `kind` and the keys of that kind; left out for a single unit."""
    source: tuple[Source, ...] = ()
    """Where the numbers of this file come from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A `[unit]` or `[fabric]`: the name of its kind, and its parameters."""

    kind: str
    parameters: FileRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TopologyFile:
    """A topology's file as read, its keys checked and nothing built."""

    where: str
    title: str
    profile: str | None
    units: int | None
    nic: NicFile | None
    unit: Part
    fabric: Part | None
    source: tuple[Source, ...] = ()


def read_topology(path: Path | str) -> TopologyFile:
    """Return the topology in a TOML file, its keys checked.

    Raises:
        InputError: with one problem for everything wrong in it.
    """
    return parse_topology(read_toml(path), str(path))


def parse_topology(data: Mapping[str, Any], where: str) -> TopologyFile:
    """Return the topology in a table; `where` names its file in messages.

    Raises:
        InputError: with one problem for everything wrong in it.
    """
    problems: list[Problem] = []
    table = _table(data, where, problems)
    unit = _part(data.get("unit"), "unit", UNITS, where, problems)
    fabric = _part(data.get("fabric"), "fabric", FABRICS, where, problems)
    if problems or table is None or unit is None:
        raise InputError(*problems)
    return TopologyFile(
        where=where,
        title=table.title,
        profile=table.profile,
        units=table.units,
        nic=table.nic,
        unit=unit,
        fabric=fabric,
        source=table.source,
    )


def located(problems: Iterable[Problem], where: str, table: str = "") -> list[Problem]:
    """Return problems with the name of the file, and keys with that of their table.

    >>> problem = Problem(key="tiers.1.radix", rule="must be at least 2")
    >>> print(*located([problem], "net.toml", "fabric"))
    net.toml: fabric.tiers[1].radix: must be at least 2
    """
    return [
        replace(
            problem,
            where=where,
            key=re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", ".".join(filter(None, (table, problem.key)))),
        )
        for problem in problems
    ]


def _table(data: Mapping[str, Any], where: str, problems: list[Problem]) -> TopologyTable | None:
    try:
        return parse_record(TopologyTable, data, where)
    except InputError as error:
        problems += located(error.problems, where)
        return None


def _part(
    table: Any,
    key: str,
    kinds: Mapping[str, UnitKind] | Mapping[str, FabricKind],
    where: str,
    problems: list[Problem],
) -> Part | None:
    """Return the part in a table; what is wrong with it is added to `problems`."""
    if not isinstance(table, Mapping):
        return None
    kind = table.get(_KIND)
    if not isinstance(kind, str) or kind not in kinds:
        rule = "this key is required" if kind is None else f"is no kind of {key}"
        fix = nearest(str(kind or ""), list(kinds))
        found = "" if kind is None else repr(kind)
        problems.append(Problem(where=where, key=f"{key}.{_KIND}", found=found, rule=rule, fix=fix))
        return None
    rest = {name: value for name, value in table.items() if name != _KIND}
    try:
        return Part(kind=kind, parameters=parse_record(kinds[kind].file, rest, where))
    except InputError as error:
        problems += located(error.problems, where, key)
        return None
