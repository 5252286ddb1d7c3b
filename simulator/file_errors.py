"""What is wrong with a file as a whole, in words."""

from __future__ import annotations

import difflib
from contextlib import suppress
from itertools import islice
from pathlib import Path

from simulator.errors import Problem

_NAMES = 10_000
"""Names of a folder that are looked through for the one that was meant."""


def reason_of(error: Exception) -> str:
    """Return in words what the system or an encoding refuses."""
    if isinstance(error, UnicodeDecodeError):
        return "must be UTF-8 text"
    if isinstance(error, UnicodeEncodeError):
        return f"holds {error.object[error.start]!a}, which is no character of UTF-8"
    return (getattr(error, "strerror", None) or str(error)).lower()


def file_problem(path: Path, rule: str, found: str = "") -> Problem:
    """Return a problem with a whole file."""
    return Problem(where=str(path), rule=rule, found=found)


def way_out(path: Path, error: Exception) -> str:
    """Return what helps where a file cannot be read: its encoding, or the name that was meant."""
    if isinstance(error, UnicodeDecodeError):
        return "save it as UTF-8"
    if not isinstance(error, FileNotFoundError) or not path.parent.is_dir():
        return ""
    names: list[str] = []
    with suppress(OSError):
        names += [each.name for each in islice(path.parent.iterdir(), _NAMES)]
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean {str(path.parent / close[0])!r}?" if close else ""


def no_file(path: Path) -> Problem:
    """Return what is wrong with a path that leads to something other than a regular file."""
    rule = "must be a regular file, which is read more than once"
    if path.is_dir():
        return Problem(where=str(path), rule=rule, found="a directory", fix="a file in it")
    found = "a pipe" if path.is_fifo() else "a socket" if path.is_socket() else "a device"
    fix = "write what it gives to a file, and name that"
    return Problem(where=str(path), rule=rule, found=found, fix=fix)
