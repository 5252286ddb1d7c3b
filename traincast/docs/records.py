"""Tables of the keys that a file may have, from the record that reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel, WithJsonSchema
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from simulator.field_docs import field_docs
from simulator.units import Dimension
from traincast.docs.markdown import anchor, code, prose, table
from traincast.docs.sources import attribute_docs

Pages = Mapping[type[BaseModel], str]
"""Records that have a page of their own."""

_PLAIN = {int: "integer", float: "number", str: "text", bool: "`true` or `false`", date: "date"}


def record_sections(
    root: type[BaseModel], pages: Pages, optional: frozenset[str], path: str = ""
) -> str:
    """Return a section for `root` and for each record inside it, with a table of its keys.

    Records in `pages` are linked to and not described again; the keys in `optional` may be left
    out of files though the record itself always has them. `path` is that of the root's own table.
    """
    paths: dict[type[BaseModel], list[str]] = {root: [""]}
    for inside, record in _inner(root, path, pages):
        paths.setdefault(record, []).append(inside)
    headings = {record: _heading(names) for record, names in paths.items()}
    words = _Words(headings=headings, pages=pages)
    parts, enums = [], dict.fromkeys(e for record in paths for e in _enums(record))
    for record in paths:
        docs = field_docs(record)
        rows = [
            [*_row(name, field, words, name in optional and record is root), docs.get(name, "")]
            for name, field in record.model_fields.items()
        ]
        title = [f"## {headings[record]}"] if headings[record] else []
        parts += [*title, prose(record), table(["key", "value", "default", "meaning"], rows)]
    for kind in enums:
        documented = attribute_docs(kind)
        if documented:
            rows = [[code(member.value), documented.get(member.name, "")] for member in kind]
            parts += [f"## Values of {kind.__name__}", prose(kind)]
            parts += [table(["value", "meaning"], rows)]
    return "\n\n".join(parts)


def inner_records(root: type[BaseModel], path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the records inside that of the table `path`, each with its own table."""
    return _inner(root, path, {})


def _inner(
    record: type[BaseModel], path: str, pages: Pages
) -> Iterator[tuple[str, type[BaseModel]]]:
    for name, field in record.model_fields.items():
        for inner, suffix, repeated in _records_in(field.annotation):
            if inner in pages:
                continue
            here = ".".join(part for part in (path.strip("[]"), name + suffix) if part)
            shown = f"[[{here}]]" if repeated else f"[{here}]"
            yield shown, inner
            yield from _inner(inner, shown, pages)


def _records_in(annotation: Any) -> Iterator[tuple[type[BaseModel], str, bool]]:
    """Yield the records in a type, with what follows their key and whether they are a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, "", False
    origin, inner = get_origin(annotation), get_args(annotation)
    for part in inner:
        for record, suffix, repeated in _records_in(part):
            keyed = f".<{_lower_name(inner[0])}>" if origin is dict else ""
            yield record, keyed + suffix, repeated or origin is tuple


def _lower_name(kind: Any) -> str:
    return str(getattr(kind, "__name__", "key")).lower()


def _heading(paths: list[str]) -> str:
    return ", ".join(code(path) for path in dict.fromkeys(paths) if path)


def _row(name: str, field: FieldInfo, words: _Words, optional: bool) -> list[str]:
    shown = words.of(field.annotation, tuple(field.metadata))
    default = "follows from others" if optional else _default(field)
    return [code(name), shown, default]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """Turns types into words; knows where each record is described."""

    headings: Mapping[type[BaseModel], str]
    pages: Pages

    def of(self, kind: Any, limits: tuple[Any, ...] = ()) -> str:
        """Return the words for a type with its limits."""
        schema = next((limit for limit in limits if isinstance(limit, WithJsonSchema)), None)
        if schema is not None:
            return _described(schema.json_schema or {})
        if get_origin(kind) is not None:
            return self._generic(kind, limits)
        if kind is Any:
            return "any value" + _limits(limits)
        if issubclass(kind, Enum):
            return " ".join(code(member.value) for member in kind)
        if issubclass(kind, BaseModel):
            target = self.pages.get(kind) or f"#{anchor(self.headings[kind])}"
            return f"[table]({target})"
        return _PLAIN[kind] + _limits(limits)

    def _generic(self, kind: Any, limits: tuple[Any, ...]) -> str:
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self.of(inner[0], (*limits, *_flat(inner[1:])))
        if origin is Literal:
            return " ".join(map(code, inner))
        if origin is tuple:
            parts = [part for part in inner if part is not Ellipsis]
            size = "" if Ellipsis in inner else f"{len(parts)} x "
            return f"list: {size}{self.of(parts[0])}{_limits(limits)}"
        if origin is dict and inner[1] is Any:
            return "table"
        if origin is dict:
            return f"table: {self.of(inner[1])} by {self.of(inner[0])}{_limits(limits)}"
        assert origin in (Union, UnionType), kind
        return " or ".join(self.of(part, limits) for part in inner if part is not NoneType)


def _described(schema: Mapping[str, Any]) -> str:
    """Return the words for a type that says its own schema."""
    if "examples" not in schema:
        return "table"
    (example,) = schema["examples"]
    what = "quantity" if schema["title"] in set(Dimension) else schema["title"]
    return f'{what} such as `"{example}"`'


def _flat(metadata: tuple[Any, ...]) -> Iterator[Any]:
    for item in metadata:
        yield from item.metadata if isinstance(item, FieldInfo) else (item,)


def _limits(limits: tuple[Any, ...]) -> str:
    words = []
    for limit in limits:
        match limit:
            case Ge(ge=bound):
                words.append(f">= {bound}")
            case Gt(gt=bound):
                words.append(f"> {bound}")
            case Le(le=bound):
                words.append(f"<= {bound}")
            case Lt(lt=bound):
                words.append(f"< {bound}")
            case MinLen(min_length=bound):
                words.append(f"at least {bound} long")
            case MaxLen(max_length=bound):
                words.append(f"at most {bound} long")
            case _ if getattr(limit, "pattern", None):
                words.append(f"like {code(limit.pattern)}")
            case _:
                pass
    return f" ({', '.join(words)})" if words else ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    quantity = next((m for m in field.metadata if isinstance(m, WithJsonSchema)), None)
    if quantity is not None and value is not None:
        unit = (quantity.json_schema or {})["title"]
        return code(f'"{value:g} {unit}"')
    return _value(value)


def _value(value: object) -> str:
    match value:
        case None:
            return "none"
        case True | False:
            return code(str(value).lower())
        case "" | () | {}:
            return "empty"
        case BaseModel():
            return "its defaults"
        case tuple():
            return code(f"[{', '.join(_literal(item) for item in value)}]")
        case _:
            assert value is not PydanticUndefined
            return code(_literal(value))


def _literal(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case _:
            return str(value)


def _enums(record: type[BaseModel]) -> Iterator[type[Enum]]:
    for field in record.model_fields.values():
        yield from _enums_in(field.annotation)


def _enums_in(annotation: Any) -> Iterator[type[Enum]]:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        yield annotation
    for part in get_args(annotation):
        yield from _enums_in(part)
