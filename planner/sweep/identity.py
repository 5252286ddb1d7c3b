"""What a forecast depends on, as digests: of its scenario, the files it names, and the program."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import hardware_profiles
import planner
import simulator
from planner.sweep.sweep_file import Method
from simulator.errors import InputError, Problem
from simulator.files import FileRecord
from simulator.scenario import Scenario

_NAMED_ELSEWHERE = ("title", "model", "stack", "profile")
"""Keys whose values are a name that has been read, or words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFile:
    """A file that a scenario names, as it was when the sweep began."""

    path: str
    sha256: str


def key_of(scenario: Scenario, what: Method, files: tuple[NamedFile, ...]) -> tuple[str, str]:
    """Return the digest of the program, and that of all that a forecast depends on.

    Titles and the places of files do not count, what is in them does.
    """
    code = code_digest()
    content = {named.path: named.sha256 for named in files}
    asked = {
        "what": what,
        "code": code,
        "numpy": np.__version__,
        "file": _without_paths(scenario.file.model_dump(mode="json"), content),
        "model": _plain(scenario.model.spec),
        "stack": _plain(scenario.stack),
        "profiles": [part.profile.sha256 for part in scenario.parts],
    }
    return code, _digest(json.dumps(asked, sort_keys=True, default=str).encode())


def named_files(scenario: Scenario) -> tuple[NamedFile, ...]:
    """Return the files that a forecast of a scenario will read."""
    paths = dict.fromkeys(_paths(scenario.file.model_dump(mode="json")))
    return tuple(NamedFile(path=path, sha256=_digest(Path(path).read_bytes())) for path in paths)


@cache
def code_digest() -> str:
    """Return the digest of the source and the data of the packages that make a forecast."""
    found = hashlib.sha256(version("traincast").encode())
    for package in (hardware_profiles, simulator, planner):
        folder = Path(package.__path__[0])
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".toml"):
                found.update(path.relative_to(folder).as_posix().encode())
                found.update(path.read_bytes())
    return found.hexdigest()


def check_place(files: tuple[NamedFile, ...], code: str, words: str) -> None:
    """Raise `InputError` where this process would forecast something else than what was asked."""
    if code_digest() != code:
        raise InputError(
            Problem(
                where=f"worker for {words}",
                rule="has another version of traincast than the one that began the sweep",
                fix="install the same one on all machines, and start their workers anew",
            )
        )
    for named in files:
        found = _digest(Path(named.path).read_bytes()) if Path(named.path).is_file() else ""
        if found != named.sha256:
            raise InputError(
                Problem(
                    where=named.path,
                    rule=f"is {'changed' if found else 'missing'} where {words} is forecast",
                    fix="put it at the same path on all machines, and leave it as it is",
                )
            )


def _plain(record: FileRecord) -> Any:
    return record.model_dump(mode="json")


def _paths(value: Any, key: str = "") -> Iterator[str]:
    """Yield the texts in a scenario that are the path of a file."""
    match value:
        case dict():
            for name, inner in value.items():
                yield from _paths(inner, name)
        case list():
            for inner in value:
                yield from _paths(inner, key)
        case str() if key not in _NAMED_ELSEWHERE and _is_file(value):
            yield value


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def _without_paths(value: Any, content: dict[str, str], key: str = "") -> Any:
    """Return a value with what is in its files in the place of their paths."""
    match value:
        case dict():
            kept = {name: inner for name, inner in value.items() if name not in _NAMED_ELSEWHERE}
            return {name: _without_paths(inner, content, name) for name, inner in kept.items()}
        case list():
            return [_without_paths(inner, content, key) for inner in value]
        case str():
            return content.get(value, value)
        case _:
            return value


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
