"""What is wrong with the keys of a file, in words: one problem a key, with what was meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ValidationError

from simulator.errors import Problem
from simulator.spelling import nearest

_SHOWN = 60
"""Characters of a value that are shown."""


def problems_of(
    kind: type[BaseModel], error: ValidationError, data: Mapping[str, Any], where: str
) -> list[Problem]:
    """Return one problem a key: what the branches of a union want is said once."""
    found: dict[str, Problem] = {}
    for item in error.errors(include_url=False):
        problem = _problem(kind, dict(item), data, where)
        if _counts_wrong_entries(dict(item)):
            continue
        other = found.get(problem.key)
        more = f"{other.rule}, or {problem.rule.removeprefix('input ')}" if other else ""
        found[problem.key] = replace(other, rule=more) if other else problem
    return list(found.values())


def _counts_wrong_entries(item: Mapping[str, Any]) -> bool:
    """Return whether a list is called too short only because its entries are wrong."""
    given = item.get("input")
    return (
        item["type"] == "too_short"
        and isinstance(given, list)
        and len(given) >= item["ctx"]["min_length"]
    )


def _problem(
    kind: type[BaseModel], item: dict[str, Any], data: Mapping[str, Any], where: str
) -> Problem:
    location = tuple(item["loc"])
    if item["type"] not in ("extra_forbidden", "missing"):
        location = _written(data, location)
    key = ".".join(str(part) for part in location)
    message = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        fix = nearest(str(location[-1]), _known_keys(kind, location[:-1]))
        return Problem(where=where, key=key, rule="unknown key", fix=fix)
    if item["type"] == "missing":
        return Problem(where=where, key=key, rule="this key is required")
    if item["type"] == "too_short":
        message = f"must have at least {item['ctx']['min_length']} entry"
    found = repr(item.get("input"))
    shown = found if len(found) <= _SHOWN else found[:_SHOWN] + "..."
    rule = message[:1].lower() + message[1:]
    return Problem(where=where, key=key, rule=rule, found=shown, fix=_meant(item))


def _meant(item: Mapping[str, Any]) -> str:
    """Return the name that was meant where one of a few names was asked for; else nothing."""
    word = item.get("input")
    if item["type"] not in ("enum", "literal_error") or not isinstance(word, str):
        return ""
    choices = re.findall(r"'([^']*)'", str(item["ctx"]["expected"]))
    like = difflib.get_close_matches(word.lower(), choices, n=1)
    like = like or [choice for choice in choices if word and word.lower() in choice][:1]
    return f"did you mean {like[0]!r}?" if like else ""


def _written(data: Any, location: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return the part of a location that stands in the file, without the branches of a union.

    A key that the file leaves out is the last part: what is wrong there is its default.
    """
    for depth, part in enumerate(location):
        try:
            data = data[part]
        except KeyError:
            return location[: depth + 1]
        except (IndexError, TypeError):
            return location[:depth]
    return location


def _known_keys(kind: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    """Return the keys legal at `location`, found by walking the record types."""
    fields = kind.model_fields
    for part in location:
        field = fields.get(str(part))
        inner = _record_in(field.annotation) if field else None
        if inner is not None:
            fields = inner.model_fields
    return list(fields)


def _record_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = (_record_in(part) for part in getattr(annotation, "__args__", ()))
    return next((record for record in found if record is not None), None)
