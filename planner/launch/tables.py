"""Tables of TOML, JSON and YAML files, and their keys as dotted names."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from typing import Any

import yaml

from planner.launch.records import LaunchFile
from simulator.errors import InputError, Problem

_YAML = (".yaml", ".yml")
_MOST_VALUES, _DEEPEST = 100_000, 100
"""Of a file of settings; aliases of YAML can make far more of a few lines."""


def is_yaml(file: LaunchFile) -> bool:
    """Return whether a file is YAML by its name."""
    return file.name.endswith(_YAML)


def read_table(file: LaunchFile) -> Mapping[str, Any]:
    """Return the table in a file, in the format of its name's ending (.toml, .yaml, else JSON).

    Raises:
        InputError: it is not one.
    """
    kind = "TOML" if file.name.endswith(".toml") else "YAML" if is_yaml(file) else "JSON"
    load = {"TOML": tomllib.loads, "YAML": yaml.safe_load, "JSON": _json}[kind]
    try:
        table = load(file.text)
        _check_size(table)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        rule = f"is not valid {kind}: {' '.join(str(error).split())}"
        raise InputError(Problem(where=file.name, rule=rule)) from error
    if not isinstance(table, dict):
        raise InputError(Problem(where=file.name, rule="must be a table of settings"))
    return table


def _json(text: str) -> Any:
    """Return the value of JSON text. A key that stands twice is refused, as by DeepSpeed."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(found)
        if len(table) < len(found):
            names = [name for name, _ in found]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the key {twice[:60]!r} stands twice in a table")
        return table

    return json.loads(text, object_pairs_hook=pairs)


def _check_size(value: Any) -> None:
    """Raise `ValueError` where a value has more values, or nests deeper, than settings do."""
    left, count = [(value, 0)], 0
    while left:
        item, depth = left.pop()
        count += 1
        if count > _MOST_VALUES or depth > _DEEPEST:
            rule = f"more than {_MOST_VALUES:,} values or {_DEEPEST} levels, with its aliases"
            raise ValueError(rule)
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        left += [(each, depth + 1) for each in inner]


def dotted(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a table's values by dotted keys.

    >>> dotted({"a": {"b": 1, "c": [2]}, "d": {}})
    {'a.b': 1, 'a.c': [2]}
    """
    found: dict[str, Any] = {}
    for name, value in table.items():
        key = f"{prefix}{name}"
        found |= dotted(value, f"{key}.") if isinstance(value, dict) else {key: value}
    return found
