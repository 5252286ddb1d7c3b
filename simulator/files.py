"""Reading of user files: every error of a file at once. Writing them is `simulator.writing`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from simulator.errors import InputError, Problem
from simulator.file_errors import file_problem, no_file, reason_of, way_out
from simulator.record_problems import problems_of
from simulator.spelling import nearest
from simulator.writing import write_atomic, write_bytes_atomic, write_together

__all__ = [
    "MAX_FILE_BYTES",
    "FileRecord",
    "Record",
    "is_there",
    "nearest",
    "parse_record",
    "read_json",
    "read_record",
    "read_text",
    "read_toml",
    "write_atomic",
    "write_bytes_atomic",
    "write_together",
]
MAX_FILE_BYTES = 32 * 2**20


class FileRecord(BaseModel):
    """Base of every record that a user can write in a file: strict, frozen, no unknown keys."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


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
            raise InputError(no_file(path))
        if size > most:
            rule = f"must be at most {most} bytes"
            raise InputError(file_problem(path, rule, f"{size} bytes"))
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        problem = file_problem(path, reason_of(error))
        raise InputError(replace(problem, fix=way_out(path, error))) from error
    if "\0" in text:
        raise InputError(file_problem(path, "must be a text file", "binary content"))
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
        raise InputError(file_problem(Path(path), f"is not valid TOML: {error}")) from error


def read_json(path: Path | str) -> Any:
    """Return the value in a JSON file. Raises `InputError` where it is not one."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(file_problem(Path(path), f"is not valid JSON: {error}")) from error


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
        raise InputError(*problems_of(kind, error, data, where)) from error
    except (ValueError, RecursionError) as error:
        raise InputError(Problem(where=where, rule=f"cannot be read: {error}")) from error


def read_record(kind: type[Record], path: Path | str) -> Record:
    """Return the TOML file at `path` as a `kind`."""
    return parse_record(kind, read_toml(path), str(path))
