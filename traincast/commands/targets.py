"""Whether outputs can be written, asked before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from simulator.errors import InputError, Problem

_SHOWN = 100
"""Characters of a target that are shown."""
Fault: TypeAlias = tuple[str, str]
"""A rule that a target breaks, and the nearest fix."""


def check_writable(targets: Mapping[str, str]) -> None:
    """Raise `InputError` with a problem for every option whose file cannot be written."""
    _check(targets, _fault_of_file)


def check_folders(folders: Mapping[str, str]) -> None:
    """Raise `InputError` with a problem for every option whose folder is none and cannot be one."""
    _check(folders, _fault_of_folder)


def check_new_folders(folders: Mapping[str, str]) -> None:
    """Raise `InputError` with a problem for every option whose folder cannot appear whole."""
    _check(folders, lambda path: None if path.is_dir() else _fault_of_file(path))


def _check(targets: Mapping[str, str], fault_of: Callable[[Path], Fault | None]) -> None:
    problems = []
    for option, target in targets.items():
        fault = _fault(target, fault_of)
        if fault is not None:
            rule, fix = fault
            found = target if len(target) <= _SHOWN else target[:_SHOWN] + "..."
            problems.append(Problem(key=option, found=found, rule=rule, fix=fix))
    if problems:
        raise InputError(*problems)


def _fault(target: str, fault_of: Callable[[Path], Fault | None]) -> Fault | None:
    if not target or "\0" in target:
        return "cannot be written: is no name of a file", "another name"
    try:
        return fault_of(Path(target))
    except (OSError, RuntimeError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        return f"cannot be written: {reason}", "another name"


def _fault_of_file(path: Path) -> Fault | None:
    path = path.resolve() if path.is_symlink() else path
    if path.is_dir():
        return "cannot be written: is a folder", f"a file in it, {path / 'NAME'}"
    if path.exists() and not path.is_file():
        writable = os.access(path, os.W_OK)
        return None if writable else ("cannot be written: no permission", "another file")
    return _fault_of_parent(path.parent) or _fault_of_name(path)


def _fault_of_parent(parent: Path) -> Fault | None:
    if not parent.exists():
        return f"cannot be written: the folder {parent} does not exist", f"mkdir -p {parent}"
    if not parent.is_dir():
        return f"cannot be written: {parent} is a file, not a folder", "another folder"
    if not os.access(parent, os.W_OK | os.X_OK):
        rule = f"cannot be written: no permission to write in the folder {parent}"
        return rule, "another folder"
    return None


def _fault_of_name(path: Path) -> Fault | None:
    most = os.pathconf(path.parent, "PC_NAME_MAX") if hasattr(os, "pathconf") else 255
    length = len(os.fsencode(path.name))
    if length <= most:
        return None
    rule = f"cannot be written: a name is at most {most} bytes long, this one {length}"
    return rule, "a shorter name"


def _fault_of_folder(folder: Path) -> Fault | None:
    if folder.is_dir():
        return _fault_of_parent(folder)
    if folder.exists():
        return "must be a folder, or the name of a new one", "another name"
    above = next(each for each in folder.absolute().parents if each.exists())
    fault = _fault_of_parent(above)
    if fault is not None:
        return fault[0].replace("written", "made", 1), fault[1]
    return _fault_of_name(above / folder.absolute().relative_to(above).parts[0])
