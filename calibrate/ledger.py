"""The journal in the hands of rank 0's supervisor: which points have a record."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from calibrate.journal import append_line, read_journal, repair
from calibrate.journal_lines import REPEATABLE
from calibrate.points import Point, key_of
from calibrate.records import Header, Line, Record, Status
from simulator.errors import InputError, Problem

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The disk, the user's share of it, or the largest file that is allowed."""


@dataclass(slots=True, kw_only=True)
class Ledger:
    """All records of a journal by point; the file is repaired whenever it is read."""

    path: Path
    retry: bool = False
    """Whether lost and noisy points of earlier runs count as not measured."""
    records: dict[str, Record] = field(default_factory=dict)
    headers: tuple[Header, ...] = ()
    before: Mapping[str, Record] = field(default_factory=dict)
    """What earlier runs have measured."""
    own: set[str] = field(default_factory=set)
    """Points that this run has a record of."""

    def begin(self) -> tuple[str, ...]:
        """Read what earlier runs have measured; return notes on what was found.

        Raises:
            InputError: a line of another version, or the disk is full.
        """
        repaired, read = self._read()
        self.before = self.records
        return (*repaired, *read)

    def refresh(self) -> tuple[str, ...]:
        """Read what workers have added; return what had to be repaired. Raises `InputError`."""
        repaired, _ = self._read()
        changed = (k for k, record in self.records.items() if self.before.get(k) != record)
        self.own.update(changed)
        return repaired

    def has(self, point: Point) -> bool:
        """Return whether a point needs no measuring."""
        key = key_of(point)
        record = self.records.get(key)
        if record is None:
            return False
        return not (self.retry and record.status in REPEATABLE and key not in self.own)

    def add(self, line: Line) -> None:
        """Append a line. Raises `InputError` where the disk is full."""
        try:
            append_line(self.path, line)
        except OSError as error:
            raise self.full(error.errno, error.strerror or "") from error
        if isinstance(line, Record):
            key = key_of(line.point)
            self.records[key] = line
            self.own.add(key)

    def counts(self) -> Mapping[Status, int]:
        """Return how many records this run has added, by status."""
        return Counter(self.records[key].status for key in self.own if key in self.records)

    def _read(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Take in the file; return notes of its repair, and notes of reading it."""
        try:
            repaired = repair(self.path)
        except OSError as error:
            raise self.full(error.errno, error.strerror or "") from error
        if not self.path.exists():
            return repaired, ()
        read = read_journal(self.path)
        self.headers = tuple(line for line in read.lines if isinstance(line, Header))
        records = (line for line in read.lines if isinstance(line, Record))
        self.records = {key_of(record.point): record for record in records}
        return repaired, read.notes

    def full(self, number: int | None, words: str) -> InputError:
        """Return the error that says that nothing can be written and nothing is lost."""
        what = "the disk is full" if number in _FULL else f"cannot be written: {words.lower()}"
        return InputError(
            Problem(
                where=str(self.path),
                rule=f"{what}; nothing is lost: {len(self.records)} points are on disk",
                fix="free space and run the same command again, which goes on from there",
            )
        )
