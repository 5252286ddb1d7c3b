"""Files of other tools, as the text of a topology file that loads."""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Problem
from simulator.topology.build import build_topology
from simulator.topology.context import context_of
from simulator.topology.imports.formats import import_file
from simulator.topology.imports.records import Imported, ImportOptions, Note
from simulator.topology.imports.table import topology_table
from simulator.topology.topology_file import parse_topology

_WIDE = 96
"""Characters of a line of names."""
_NESTED = ("unit", "fabric", "nic")
_DELETE = "\x7f"
"""The one control character that JSON lets stand as it is and TOML does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The text of a topology file, and what there is to know of how it came about."""

    text: str
    imported: tuple[Imported, ...]
    notes: tuple[Note, ...]
    """On the whole; those on a file are with it."""


def import_topology(
    paths: Sequence[Path | str],
    options: ImportOptions,
    *,
    title: str,
    read_on: date,
    nodes: int | None = None,
) -> Written:
    """Return the topology file that some files make together; it is loaded once before.

    Raises:
        InputError: with the problems of all files, or what does not fit together.
    """
    imported, problems = [], list[Problem]()
    for path in paths:
        try:
            imported.append(import_file(path, options))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    table, notes = topology_table(imported, options, title=title, read_on=read_on, nodes=nodes)
    text = table_text(table) + _names(imported)
    file = parse_topology(tomllib.loads(text), "the topology of these files")
    if options.profile is not None:
        build_topology(file, context_of(options.profile))
    return Written(text=text, imported=tuple(imported), notes=tuple(notes))


def table_text(table: dict[str, Any]) -> str:
    """Return a table as TOML; lists of tables have one line for each entry.

    >>> print(table_text({"title": "one", "unit": {"cable": [{"ends": ["a", "b"]}]}}), end="")
    title = "one"
    <BLANKLINE>
    [unit]
    cable = [
        { ends = ["a", "b"] },
    ]
    """
    lines = [_line(key, value) for key, value in table.items() if key not in (*_NESTED, "source")]
    for key in _NESTED:
        if key in table:
            lines += ["", f"[{key}]", *(_line(name, value) for name, value in table[key].items())]
    for source in table.get("source", ()):
        lines += ["", "[[source]]", *(_line(name, value) for name, value in source.items())]
    return "\n".join(lines) + "\n"


def _names(imported: Sequence[Imported]) -> str:
    """Return which node of the file each unit is, as a comment."""
    names = [name for found in imported if found.fabric for name in found.fabric.nodes]
    if not names:
        return ""
    wrapped = textwrap.wrap(", ".join(names), _WIDE, break_long_words=False, break_on_hyphens=False)
    return "\n".join(["", "# Nodes in order:", *(f"# {line}" for line in wrapped)]) + "\n"


def _line(key: str, value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "\n".join([f"{key} = [", *(f"    {_value(entry)}," for entry in value), "]"])
    return f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    match value:
        case dict():
            inside = ", ".join(f"{key} = {_value(entry)}" for key, entry in value.items())
            return f"{{ {inside} }}"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case date():
            return value.isoformat()
        case _:
            return json.dumps(value, ensure_ascii=False).replace(_DELETE, "\\u007f")
