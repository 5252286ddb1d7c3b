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


def is_yaml(file: LaunchFile) -> bool:
    """Return whether a file is YAML by its name."""
    return file.name.endswith(_YAML)


def read_table(file: LaunchFile) -> Mapping[str, Any]:
    """Return the table in a file, in the format of its name's ending (.toml, .yaml, else JSON).

    Raises:
        InputError: it is not one.
    """
    kind = "TOML" if file.name.endswith(".toml") else "YAML" if is_yaml(file) else "JSON"
    load = {"TOML": tomllib.loads, "YAML": yaml.safe_load, "JSON": json.loads}[kind]
    try:
        table = load(file.text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        rule = f"is not valid {kind}: {' '.join(str(error).split())}"
        raise InputError(Problem(where=file.name, rule=rule)) from error
    if not isinstance(table, dict):
        raise InputError(Problem(where=file.name, rule="must be a table of settings"))
    return table


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
