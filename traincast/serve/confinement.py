"""What a page may read: its own folder, and what traincast and Python ship."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Problem

_RULE = "leads out of the folder of this page, which reads that folder and what traincast ships"
_FIX = "a shipped name, or a copy in the folder"
_PACKAGES = ("simulator", "hardware_profiles", "planner", "calibrate", "reports", "traincast")
_NO_FILE = ("title",)
"""Keys of a scenario whose text is never a name."""
_SHOWN = 100


def check_names(table: Mapping[str, Any], where: str, folder: Path) -> None:
    """Raise `InputError` for every text of a scenario that names a file outside of the folder."""
    inside = folder.resolve()
    problems = [
        Problem(where=where, key=key, found=text[:_SHOWN], rule=_RULE, fix=_FIX)
        for key, text in _texts(table)
        if key not in _NO_FILE and not _is_in(Path(os.path.realpath(inside / text)), inside)
    ]
    if problems:
        raise InputError(*problems)


def confine(folder: Path) -> None:
    """Refuse, in this process and for good, to open files that a scenario's files lead to outside.

    What stands in a file of the folder may name others: no name in any file leads further than
    here. Devices and what Python itself loads stay open.
    """
    shipped = (Path(__file__).parents[2] / package for package in _PACKAGES)
    own = (folder, *shipped, *map(Path, (sys.prefix, sys.base_prefix, os.devnull)))
    roots = tuple({each.resolve() for each in own})

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        path = Path(os.path.realpath(os.fsdecode(arguments[0])))
        if not any(_is_in(path, root) for root in roots):
            raise InputError(Problem(where=str(path), rule=_RULE, fix=_FIX))

    sys.addaudithook(check)


def _is_in(path: Path, root: Path) -> bool:
    return path.is_relative_to(root)


def _texts(value: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield every text of a table with the path of its key; what no file can be called is none."""
    match value:
        case str() if "\0" not in value:
            yield key, value
        case Mapping():
            for name, each in value.items():
                yield from _texts(each, f"{key}.{name}" if key else str(name))
        case list():
            for each in value:
                yield from _texts(each, key)
        case _:
            return
