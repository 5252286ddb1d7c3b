"""The finished rows of a sweep on disk, so that a sweep that was killed goes on.

One JSON line a row, which is on disk before the next is begun. A row is found by the digest of all
that it depends on: a scenario, file, profile or program that has changed has another one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from planner.sweep.cases import Case
from planner.sweep.row import Row
from simulator.errors import InputError, Problem
from simulator.files import FileRecord
from simulator.folder_lock import lock_folder
from simulator.synced_file import append_synced

ROWS = "rows.jsonl"


class _Line(FileRecord):
    key: str
    values: dict[str, Any]
    """For people: what the key stands for."""
    row: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A folder that this process alone writes to."""

    path: Path
    rows: dict[str, Row] = field(default_factory=dict)
    """By the key of their case."""
    notes: tuple[str, ...] = ()
    """What the user should be told of the file."""

    def known(self, case: Case) -> Row | None:
        """Return the row of a case that was forecast before."""
        return self.rows.get(case.key)

    def keep(self, case: Case, row: Row) -> None:
        """Put a row on disk."""
        line = _Line(key=case.key, values=_plain(case.values), row=row)
        try:
            append_synced(self.path, line.model_dump_json().encode() + b"\n")
        except OSError as error:
            rule = f"cannot be written: {(error.strerror or '').lower()}"
            raise InputError(Problem(where=str(self.path), rule=rule)) from error
        self.rows[case.key] = row


@contextmanager
def open_store(folder: Path, sleep: Callable[[float], None] = time.sleep) -> Iterator[Store]:
    """Give the rows of a folder, which is made and locked.

    A last line that was cut is taken out, with a note: its row is computed again.

    Raises:
        InputError: another sweep has the folder, it cannot be written, or a line is not of a sweep.
    """
    lock = lock_folder(folder, sleep, doing="sweep")
    try:
        path = folder / ROWS
        cut = _repair(path)
        yield Store(path=path, rows=dict(_read(path)), notes=(*lock.notes, *cut))
    finally:
        lock.release()


def _repair(path: Path) -> tuple[str, ...]:
    """Take a last line without an end out of the file, and say so."""
    if not path.exists():
        return ()
    with path.open("rb+") as file:
        data = file.read()
        whole = data.rfind(b"\n") + 1
        if whole == len(data):
            return ()
        file.truncate(whole)
        os.fsync(file.fileno())
    return (f"{path}: the last line was cut; its row is computed again",)


def _read(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield the rows of the file; of one key the last counts."""
    if not path.exists():
        return
    problems: list[Problem] = []
    for number, text in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            line = _Line.model_validate_json(text)
        except ValueError:
            problems.append(_broken(path, number))
            continue
        yield line.key, line.row
    if problems:
        raise InputError(*problems)


def _broken(path: Path, number: int) -> Problem:
    return Problem(
        where=f"{path}, line {number}",
        rule="is not a row that this version of traincast has written",
        fix="take the line out, or choose another folder with --out",
    )


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(dict(values), default=str))  # type: ignore[no-any-return]
