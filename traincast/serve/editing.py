"""A scenario's text changed at one key: comments and the order of keys stay."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from simulator.errors import InputError, Problem
from simulator.files import MAX_FILE_BYTES
from traincast.serve.fields import FieldKind, FormField

MAX_TEXT_BYTES = 256 * 2**10
"""A scenario on the page; the longest shipped one is under 4 KiB."""
assert MAX_TEXT_BYTES < MAX_FILE_BYTES


def read_text_as_table(text: str, where: str) -> dict[str, Any]:
    """Return the table in a scenario's text.

    Raises:
        InputError: it is too long, or no TOML.
    """
    size = len(text.encode("utf-8", "replace"))
    if size > MAX_TEXT_BYTES:
        rule = f"must be at most {MAX_TEXT_BYTES} bytes on this page"
        raise InputError(Problem(where=where, rule=rule, found=f"{size} bytes"))
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(Problem(where=where, rule=f"is not valid TOML: {error}")) from error


def with_value(text: str, field: FormField, value: Any) -> str:
    r"""Return a scenario's text with one key set; None or an empty value takes the key out.

    >>> tp = FormField(key="layout.tp", kind=FieldKind.NUMBER)
    >>> with_value("[layout]\ntp = 8  # a node\n", tp, "4")
    '[layout]\ntp = 4  # a node\n'

    Raises:
        InputError: the text is no TOML, or a part of the key is not a table.
    """
    read_text_as_table(text, "scenario")
    *tables, name = field.key.split(".")
    try:
        document = tomlkit.parse(text)
        table: Any = document
        for each in tables:
            if each not in table and value not in (None, ""):
                table[each] = tomlkit.table()
            table = table.get(each, {})
        if not isinstance(table, Mapping):
            rule = "must be a table before a key of it can be set"
            raise InputError(Problem(where="scenario", key=".".join(tables), rule=rule))
        if value in (None, ""):
            table.pop(name, None)  # type: ignore[attr-defined]
        else:
            table[name] = _written(field, value)  # type: ignore[index]
        return tomlkit.dumps(document)
    except (TOMLKitError, RecursionError, ValueError, TypeError, AttributeError) as error:
        raise InputError(Problem(where="scenario", key=field.key, rule=str(error))) from error


def with_layout(text: str, layout: Mapping[str, Any]) -> str:
    """Return a scenario's text with another layout table."""
    read_text_as_table(text, "scenario")
    document = tomlkit.parse(text)
    table = tomlkit.table()
    table.update(layout)
    document["layout"] = table
    return tomlkit.dumps(document)


def values_of(text: str, fields: Sequence[FormField]) -> list[Any]:
    """Return what a scenario's text gives for each field; None where it gives nothing.

    Raises:
        InputError: the text is no TOML.
    """
    table = read_text_as_table(text, "scenario")
    return [_shown(field, _value_at(table, field.key.split("."))) for field in fields]


def _value_at(table: Any, path: Sequence[str]) -> Any:
    for each in path:
        table = table.get(each) if isinstance(table, Mapping) else None
    return table


def _shown(field: FormField, value: Any) -> Any:
    match field.kind:
        case FieldKind.SWITCH:
            return str(value).lower() if isinstance(value, bool) else None
        case FieldKind.NUMBER:
            plain = isinstance(value, int | float) and not isinstance(value, bool)
            return str(value) if plain else None
        case FieldKind.LIST:
            return tomlkit.item(value).as_string() if isinstance(value, list) else None
        case FieldKind.TEXT | FieldKind.CHOICE:
            return value if isinstance(value, str) else None


def _written(field: FormField, value: Any) -> Any:
    """Return a field's value as TOML holds it; what is no such value stays text, to be refused."""
    if field.kind is FieldKind.SWITCH:
        return value == "true"
    if field.kind in (FieldKind.NUMBER, FieldKind.LIST):
        try:
            return tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            return str(value)
    return value
