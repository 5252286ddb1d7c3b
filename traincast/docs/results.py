"""The page of result files: every kind, with the keys that reports read of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from reports.result_files.loading import MODELS
from reports.result_kinds import FORMAT, WRITERS, ResultKind
from simulator.field_docs import field_docs
from traincast.docs.markdown import code, page, table

_INTRO = (
    f"`traincast report` reads the files that verbs write with `--json`. Each is one JSON object "
    f"whose first keys are `kind` and `format` (now {FORMAT}). Files may hold more keys than those "
    "listed, which are the ones that reports read; ignore those that you do not know. Keys carry "
    "their unit: `_s` seconds, `_bytes` bytes; shares are fractions of 1."
)


def results_page() -> str:
    """Return the page of all kinds of result files."""
    kinds = [[code(kind.value), code(WRITERS[kind]), _first(MODELS[kind])] for kind in ResultKind]
    return page("Result files", _INTRO, table(["kind", "written by", "holds"], kinds), *_sections())


def _sections() -> Iterator[str]:
    """Yield a section for each record, those of a kind where it is met first."""
    seen: set[type[BaseModel]] = set()
    for kind in ResultKind:
        for record in _records(MODELS[kind]):
            if record in seen:
                continue
            seen.add(record)
            title = f"`{kind}`" if record is MODELS[kind] else record.__name__
            yield f"## {title}"
            yield _first(record)
            rows = [
                [code(name), _type(field.annotation), field_docs(record).get(name, "")]
                for name, field in record.model_fields.items()
            ]
            yield table(["key", "value", "meaning"], rows)


def _first(record: type[BaseModel]) -> str:
    return " ".join((record.__doc__ or "").split())


def _records(record: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield record
    for field in record.model_fields.values():
        for inner in _inner(field.annotation):
            yield from _records(inner)


def _inner(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _inner(part)


def _type(annotation: Any) -> str:
    """Return a type as a reader of JSON would call it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"table: {annotation.__name__}"
    plain = {str: "text", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    if annotation in plain:
        return plain[annotation]
    parts = [part for part in get_args(annotation) if part is not Ellipsis]
    if getattr(annotation, "__origin__", None) is tuple:
        return "list: " + " ".join(dict.fromkeys(map(_type, parts)))
    if getattr(annotation, "__origin__", None) is dict:
        return f"table: {_type(parts[1])} by name"
    if not parts:
        return "text" if isinstance(annotation, type) else "any"
    return " or ".join(dict.fromkeys(map(_type, parts)))
