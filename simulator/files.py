"""Reading and writing of user files: every error of a file at once, nothing half-written."""

from __future__ import annotations

import difflib
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from simulator.errors import InputError, Problem

MAX_FILE_BYTES = 32 * 2**20
_SHOWN = 60


class FileRecord(BaseModel):
    """Base of every record that a user can write in a file: strict, frozen, no unknown keys."""

    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True
    )


Record = TypeVar("Record", bound=BaseModel)


def read_text(path: Path | str, most: int = MAX_FILE_BYTES) -> str:
    """Return the UTF-8 text of a regular file of at most `most` bytes.

    Raises:
        InputError: missing, a directory, no permission, too large, or not text.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise InputError(_file_problem(path, "must be a regular file", "a directory or device"))
        if size > most:
            rule = f"must be at most {most} bytes"
            raise InputError(_file_problem(path, rule, f"{size} bytes"))
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(_file_problem(path, _reason(error), "")) from error
    if "\0" in text:
        raise InputError(_file_problem(path, "must be a text file", "binary content"))
    return text


def is_there(path: Path | str) -> bool:
    """Return whether a path leads to anything; one that no file can have does not."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def read_toml(path: Path | str) -> dict[str, Any]:
    """Return the table in a TOML file. Raises `InputError` where it is not one."""
    text = read_text(path)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InputError(_file_problem(Path(path), f"is not valid TOML: {error}", "")) from error


def read_json(path: Path | str) -> Any:
    """Return the value in a JSON file. Raises `InputError` where it is not one."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(_file_problem(Path(path), f"is not valid JSON: {error}", "")) from error


def parse_record(kind: type[Record], data: Mapping[str, Any], where: str) -> Record:
    """Return `data` as a `kind`; `where` names the file in error messages.

    Values are read by JSON's rules, so that lists become tuples and strings enums, and nothing
    else is converted.

    Raises:
        InputError: with one problem for every wrong, missing or unknown key.
    """
    try:
        return kind.model_validate_json(json.dumps(data, default=str))
    except ValidationError as error:
        raise InputError(*_problems(kind, error, data, where)) from error
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(where=where, rule=f"cannot be read: {error}")) from error


def read_record(kind: type[Record], path: Path | str) -> Record:
    """Return the TOML file at `path` as a `kind`."""
    return parse_record(kind, read_toml(path), str(path))


def write_atomic(path: Path | str, text: str) -> None:
    """Write `text` as `write_bytes_atomic` does."""
    write_bytes_atomic(path, text.encode("utf-8"))


def write_bytes_atomic(path: Path | str, data: bytes) -> None:
    """Write `data` to `path` so that a reader sees the old file or the new one, never a part.

    A link stays, and the file that it names is written; a device or pipe is written to as it is.

    Raises:
        InputError: the folder is missing or cannot be written.
    """
    path = Path(path)
    temporary = ""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            path.write_bytes(data)
            return
        path = path.resolve() if path.is_symlink() else path
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except (OSError, RuntimeError) as error:
        raise InputError(_file_problem(path, f"cannot be written: {_reason(error)}", "")) from error
    finally:
        if temporary:
            Path(temporary).unlink(missing_ok=True)


def nearest(word: str, choices: list[str]) -> str:
    """Return `did you mean ...` for a misspelt word, or the list of choices."""
    close = difflib.get_close_matches(word, choices, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return "one of: " + ", ".join(sorted(choices))


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "must be UTF-8 text"
    return (getattr(error, "strerror", None) or str(error)).lower()


def _file_problem(path: Path, rule: str, found: str) -> Problem:
    return Problem(where=str(path), rule=rule, found=found)


def _problems(
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
