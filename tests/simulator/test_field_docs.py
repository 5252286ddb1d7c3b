"""Docstrings of fields: read from the source, also of parents, on one line."""

from __future__ import annotations

from pydantic import Field

from simulator.field_docs import DescribedSchema, field_docs
from simulator.files import FileRecord


class Parent(FileRecord):
    """A record."""

    size: int
    """Of the whole,
    in bytes."""
    bare: int = 0


class Child(Parent):
    """Another."""

    inner: Parent
    """What it holds."""
    size: int = Field(ge=1)
    """Of a part, in bytes."""


def test_a_docstring_stands_on_one_line_and_bare_fields_have_none() -> None:
    assert field_docs(Parent) == {"size": "Of the whole, in bytes."}


def test_a_field_that_is_declared_again_has_its_own() -> None:
    assert field_docs(Child) == {"size": "Of a part, in bytes.", "inner": "What it holds."}


def test_every_property_of_a_schema_is_described_at_every_depth() -> None:
    schema = Child.model_json_schema(schema_generator=DescribedSchema)
    found = {name: field.get("description") for name, field in schema["properties"].items()}
    assert found == {**field_docs(Child), "bare": None}
    assert schema["$defs"]["Parent"]["properties"]["size"]["description"] == (
        "Of the whole, in bytes."
    )
