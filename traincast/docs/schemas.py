"""JSON schemas of the files that users write, for editors that complete and check TOML."""

from __future__ import annotations

import json

from pydantic import BaseModel

from simulator.field_docs import DescribedSchema

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_text(record: type[BaseModel], title: str, optional: frozenset[str]) -> str:
    """Return the JSON schema of a record; the keys in `optional` may be left out of files."""
    schema = record.model_json_schema(schema_generator=DescribedSchema)
    required = [key for key in schema.get("required", []) if key not in optional]
    schema |= {"$schema": DRAFT, "title": title, "required": required}
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"
