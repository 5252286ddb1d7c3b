"""The schema of topology files knows each kind, and what stands in the examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from simulator.files import read_toml
from simulator.topology.registry import FABRICS, UNITS
from traincast.docs.topologies import topology_schema

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples" / "topologies").glob("*.toml"))
SCHEMA = json.loads(topology_schema())


def kinds(table: str) -> dict[str, dict[str, Any]]:
    """Return the schema of each kind of a table."""
    return {
        kind["properties"]["kind"]["const"]: kind for kind in SCHEMA["properties"][table]["oneOf"]
    }


def references(schema: Any) -> set[str]:
    """Return the names of all records that a schema refers to."""
    if isinstance(schema, list):
        return {name for item in schema for name in references(item)}
    if not isinstance(schema, dict):
        return set()
    own = {schema["$ref"].removeprefix("#/$defs/")} if "$ref" in schema else set()
    return own | references(list(schema.values()))


def test_the_schema_has_every_kind_of_the_registries() -> None:
    assert (set(kinds("unit")), set(kinds("fabric"))) == (set(UNITS), set(FABRICS))


def test_every_record_that_the_schema_refers_to_is_in_it() -> None:
    assert references(SCHEMA) <= set(SCHEMA["$defs"])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("table", ["unit", "fabric"])
def test_keys_of_an_example_are_in_the_schema_of_its_kind(path: Path, table: str) -> None:
    written = read_toml(path)[table]
    schema = kinds(table)[written["kind"]]
    assert set(schema["required"]) <= set(written) <= set(schema["properties"])
