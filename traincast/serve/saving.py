"""Scenarios written from the page: into its folder only, and over nothing unasked."""

from __future__ import annotations

from pathlib import Path

from simulator.errors import InputError, Problem
from simulator.files import write_atomic
from traincast.serve.editing import read_text_as_table


def save(text: str, name: str, folder: Path, *, replace: bool) -> Path:
    """Write a scenario's text to a file of `folder`, and return its path.

    Raises:
        InputError: the name leads out of the folder once links are followed, is not a .toml, is
            taken and `replace` is not set; or the text is no TOML.
    """
    read_text_as_table(text, "scenario.toml")
    target = _target(name, folder)
    if target.exists() and not replace:
        rule = "exists already"
        fix = "tick “replace”, or another name"
        raise InputError(Problem(where=name, rule=rule, fix=fix))
    write_atomic(target, text)
    return target


def _target(name: str, folder: Path) -> Path:
    """Return the file that a name leads to."""
    inside = folder.resolve()
    try:
        target = (inside / name).resolve()
        problem = _problem(target, inside)
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(Problem(where=repr(name), rule=f"is no file name: {error}")) from error
    if problem:
        raise InputError(Problem(where=name or "name", rule=problem, fix="scenario.toml"))
    return target


def _problem(target: Path, inside: Path) -> str:
    if not target.is_relative_to(inside):
        return "must stay in the folder of this page"
    if target.suffix != ".toml":
        return "must end with .toml"
    if target.exists() and not target.is_file():
        return "is not a file"
    return "" if target.parent.is_dir() else "is in a folder that does not exist"
