"""What is written below the fields of a record: its docstrings, read when somebody asks."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from textwrap import dedent

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema


@cache
def field_docs(record: type[BaseModel]) -> dict[str, str]:
    """Return the docstring of each field of a record that has one, on one line.

    Pydantic can keep them (`use_attribute_docstrings`), but then reads the source of every record
    whenever it is imported.
    """
    found: dict[str, str] = {}
    for parent in reversed(record.__mro__):
        if issubclass(parent, BaseModel) and parent is not BaseModel:
            found |= _own_docs(parent)
    return {name: doc for name, doc in found.items() if name in record.model_fields}


def _own_docs(record: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings of the fields that a class itself declares."""
    (declared,) = ast.parse(dedent(inspect.getsource(record))).body
    assert isinstance(declared, ast.ClassDef), "the source of a class is a class"
    found = {}
    for field, below in zip(declared.body, declared.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(doc))),
            ):
                found[name] = " ".join(doc.split())
            case _:
                pass
    return found


class DescribedSchema(GenerateJsonSchema):
    """The JSON schema of records, each property described by its field's docstring."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        """Return the schema of one record."""
        made = super().model_schema(schema)
        record: type[BaseModel] = schema["cls"]
        for name, doc in field_docs(record).items():
            made["properties"][name].setdefault("description", doc)
        return made
