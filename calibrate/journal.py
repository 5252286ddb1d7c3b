"""The journal of a run: JSON lines of which every finished one is on disk before the next is begun.

`calibrate run` owns a folder while it holds its lock: it repairs and appends. Everyone else only
reads. Nothing is ever deleted: what is broken is moved to a file beside the journal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from calibrate.journal_lines import RawLine, parse_lines, split_lines, without_repeats
from calibrate.records import Line
from simulator.errors import InputError, Problem
from simulator.files import is_there
from simulator.synced_file import append_synced, sync_folder, write_all

JOURNAL = "measured.jsonl"
BROKEN = ".broken"
"""Added to the name of a journal: what was cut out of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """What was read, and what the reader should be told."""

    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()


def read_journal(path: Path) -> Lines:
    """Return the lines that count of one file, which stays as it is.

    A last line that was cut is left out with a note: the power went while it was written, and its
    point will be measured again.

    Raises:
        InputError: no file, a line of another version, or a broken line that others follow.
    """
    raw = split_lines(_bytes_of(path))
    broken = [line for line in raw if not line.whole]
    cut = [line for line in broken if line is raw[-1] and not line.ended]
    if len(broken) > len(cut):
        raise InputError(*(_broken_problem(line, path) for line in broken if line not in cut))
    lines, notes = without_repeats(parse_lines([line for line in raw if line.whole], path))
    cut_notes = tuple(f"{path}: the last line is cut and was left out" for _ in cut)
    return Lines(lines=lines, notes=(*cut_notes, *(f"{path}: {note}" for note in notes)))


def read_folder(folder: Path) -> Lines:
    """Return the lines of all `*.jsonl` of a folder, by name; each file begins with its header.

    Raises:
        InputError: no folder, no such file in it, or as `read_journal` does.
    """
    fix = f"traincast calibrate run --out {folder}"
    if not folder.is_dir():
        rule = "must be a folder with measurements"
        if is_there(folder):
            found, fix = "a file", str(folder.parent)
        else:
            found = "nothing"
        raise InputError(Problem(where=str(folder), found=found, rule=rule, fix=fix))
    paths = sorted(folder.glob("*.jsonl"))
    if not paths:
        rule = "has no measurements (*.jsonl)"
        raise InputError(Problem(where=str(folder), rule=rule, fix=fix))
    read = [read_journal(path) for path in paths]
    return Lines(
        lines=tuple(line for each in read for line in each.lines),
        notes=tuple(note for each in read for note in each.notes),
    )


def append_line(path: Path, line: Line) -> None:
    """Add a line; it is on disk on return, and the file is as before where this raises.

    Raises:
        OSError: the disk is full, or whatever the file system says.
    """
    append_synced(path, line.model_dump_json().encode() + b"\n")


def repair(path: Path) -> tuple[str, ...]:
    """Move broken lines out of a journal, into a file beside it, and return what was done.

    Only the owner of the folder may. The points of broken lines have no record afterwards and
    are measured again.
    """
    if not path.exists():
        return ()
    raw = split_lines(_bytes_of(path))
    broken = [line for line in raw if not line.whole]
    unended = bool(raw) and not raw[-1].ended
    if not broken and not unended:
        return ()
    if broken:
        _keep_aside(broken, path)
    _rewrite(path, [line for line in raw if line.whole])
    return tuple(_repair_note(line, path) for line in broken)


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        rule = f"cannot be read: {(error.strerror or '').lower()}"
        raise InputError(Problem(where=str(path), rule=rule)) from error


def _broken_problem(line: RawLine, path: Path) -> Problem:
    return Problem(
        where=f"{path}, line {line.number}",
        rule="every line must be a JSON object",
        found=f"{len(line.data)} bytes that are not one",
        fix=f"`traincast calibrate run --out {path.parent}` moves it to {path.name}{BROKEN} and "
        "measures its point again; an imported file is best imported again",
    )


def _repair_note(line: RawLine, path: Path) -> str:
    what = "was broken" if line.ended else "was cut"
    return (
        f"{path}: line {line.number} {what}; its {len(line.data)} bytes are kept in "
        f"{path.name}{BROKEN} and its point is measured again"
    )


def _keep_aside(broken: list[RawLine], path: Path) -> None:
    aside = path.with_name(path.name + BROKEN)
    handle = os.open(aside, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        write_all(handle, b"".join(line.data + b"\n" for line in broken))
        os.fsync(handle)
    finally:
        os.close(handle)


def _rewrite(path: Path, lines: list[RawLine]) -> None:
    """Replace a journal by these lines; a crash leaves the old one or the new one."""
    fresh = path.with_name(f".{path.name}.repaired")
    handle = os.open(fresh, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o644)
    try:
        write_all(handle, b"".join(line.data + b"\n" for line in lines))
        os.fsync(handle)
    finally:
        os.close(handle)
    fresh.replace(path)
    sync_folder(path.parent)
