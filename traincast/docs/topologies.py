"""The page and the schema of topology files: their keys, and those of each kind in the registry."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from simulator.field_docs import DescribedSchema
from simulator.topology.registry import FABRICS, UNITS, FabricKind, UnitKind
from simulator.topology.topology_file import TopologyTable
from traincast.docs.markdown import anchor, code, first_line, page, table
from traincast.docs.records import inner_records, record_sections
from traincast.docs.schemas import DRAFT

_TITLE = "The topology file"
Kinds = Mapping[str, UnitKind] | Mapping[str, FabricKind]
_TABLES: dict[str, Kinds] = {"unit": UNITS, "fabric": FABRICS}


def topology_page() -> str:
    """Return the page of topology files."""
    return page(
        _TITLE,
        "The network of a cluster as a TOML file, which `topology` of a scenario's "
        "`[cluster.network]` names: a unit (a node, or the nodes of one scale-up domain) that "
        "repeats, and a fabric that its NICs are plugged into. A scenario that names none gets the "
        "network of its profile's `[node]` and `[fabric]`.",
        "Bandwidths are nominal and per direction. What is left out is taken from the profile. "
        "Cables of NICs and links of the fabric carry `efficiency` of what is written; links of a "
        "unit carry all of it. Examples of each kind: "
        "[examples/topologies](../../examples/topologies). To add a kind: "
        "[../how-to/add-a-topology.md](../how-to/add-a-topology.md).",
        "Editors can check it: [schema/topology.json](schema/topology.json).",
        record_sections(TopologyTable, {}, frozenset()),
        *_summaries(),
        *(section for name, kinds in _TABLES.items() for section in _kinds(name, kinds)),
    )


def topology_schema() -> str:
    """Return the JSON schema of a topology file."""
    schema = TopologyTable.model_json_schema(schema_generator=DescribedSchema)
    inside = schema.setdefault("$defs", {})
    for name, kinds in _TABLES.items():
        schema["properties"][name] = {
            "description": schema["properties"][name]["description"],
            "oneOf": [_kind_schema(kind, found.file, inside) for kind, found in kinds.items()],
        }
    return json.dumps(schema | {"$schema": DRAFT, "title": _TITLE}, indent=2, sort_keys=True) + "\n"


def _summaries() -> Iterator[str]:
    """Yield a table of the kinds of each table of the file."""
    for name, kinds in _TABLES.items():
        rows = [
            [f"[{code(kind)}](#{anchor(_heading(name, kind))})", first_line(found.file)]
            for kind, found in kinds.items()
        ]
        yield f"## Kinds of {name}"
        yield table([f"`kind` of `[{name}]`", "what it is"], rows)


def _kinds(name: str, kinds: Kinds) -> Iterator[str]:
    """Yield the section of each kind; a record inside several of them is described once."""
    described: dict[type[BaseModel], str] = {}
    for kind, found in kinds.items():
        yield f"## {_heading(name, kind)}"
        yield record_sections(found.file, described, frozenset(), name)
        for path, record in inner_records(found.file, name):
            described.setdefault(record, f"#{anchor(path)}")


def _heading(name: str, kind: str) -> str:
    return f"{name.capitalize()}: {kind}"


def _kind_schema(kind: str, record: type[BaseModel], inside: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a table of one kind; the records inside it are added to `inside`."""
    schema = record.model_json_schema(
        ref_template="#/$defs/{model}", schema_generator=DescribedSchema
    )
    for name, inner in schema.pop("$defs", {}).items():
        assert inside.setdefault(name, inner) == inner, f"two records are called {name}"
    properties = {"kind": {"const": kind}} | schema.get("properties", {})
    required = ["kind", *schema.get("required", [])]
    return schema | {"properties": properties, "required": required, "title": kind}
