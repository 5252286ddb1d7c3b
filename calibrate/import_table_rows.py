"""One row of a table of measurements, and what all kinds of tables do with rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrate.import_options import Companion, Imported
from calibrate.import_records import Measured, header, records_of
from calibrate.records import Fingerprint, Header, Record
from calibrate.validation.cells import Row, SkippedRowError
from simulator.errors import InputError, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """The cells of one row by the name of their column in lower case."""

    line: int
    cells: Mapping[str, str]
    problem: str = ""
    """Why the row cannot be read; empty where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRow:
    """One row as a measurement on a machine."""

    accelerator: str | None
    measured: Measured
    notes: tuple[str, ...] = ()
    """What was assumed."""
    per_node: int | None = None
    """Accelerators on each node."""

    @property
    def fingerprint(self) -> Fingerprint:
        """The machine."""
        return Fingerprint(accelerator=self.accelerator, accelerators_per_node=self.per_node)


def read_rows(
    rows: Iterable[TableRow], read: Callable[[Row, int], ReadRow], path: Path
) -> tuple[list[ReadRow], list[Problem]]:
    """Return the rows that can be read, and a problem for each that cannot."""
    found: list[ReadRow] = []
    reasons: dict[str, list[int]] = {}
    for row in rows:
        try:
            if row.problem:
                raise SkippedRowError(row.problem)
            found.append(read(Row(row.cells), row.line))
        except SkippedRowError as error:
            reasons.setdefault(str(error), []).append(row.line)
        except InputError as error:
            told = "; ".join(str(problem).partition("\n")[0] for problem in error.problems)
            reasons.setdefault(told, []).append(row.line)
    return found, [_left_out(path, lines, reason) for reason, lines in reasons.items()]


def imported_rows(
    rows: Sequence[ReadRow],
    problems: Sequence[Problem],
    path: Path,
    kind: str,
    files: Sequence[tuple[str, Companion]] = (),
) -> Imported:
    """Return rows as calibration lines, one header a machine.

    Raises:
        InputError: not one row could be read.
    """
    if not rows:
        raise InputError(*problems)
    lines: list[Header | Record] = []
    for machine in dict.fromkeys((row.accelerator, row.per_node) for row in rows):
        alike = [row for row in rows if (row.accelerator, row.per_node) == machine]
        lines.append(header(alike[0].fingerprint, path.name))
        lines += records_of((row.measured for row in alike), path.name)
    assumed = Counter(note for row in rows for note in row.notes)
    notes = [
        Problem(where=str(path), rule=f"assumed in {count} rows: {note}")
        for note, count in assumed.items()
    ]
    if any(row.accelerator is None for row in rows):
        rule = "names no accelerator"
        notes.append(Problem(where=str(path), rule=rule, fix="--accelerator NAME"))
    return Imported(kind=kind, lines=tuple(lines), notes=(*problems, *notes), files=tuple(files))


def _left_out(path: Path, lines: Sequence[int], reason: str) -> Problem:
    """Return one problem for all rows that are left out for the same reason."""
    more = f" and {len(lines) - 1} more" if len(lines) > 1 else ""
    return Problem(where=str(path), key=f"line {lines[0]}{more}", rule=f"left out: {reason}")
