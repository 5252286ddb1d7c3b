"""CSV files of measurements: which kind of table it is, and its rows with their lines."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrate.import_options import Imported, ImportOptions
from calibrate.import_rccl_rows import NEEDED, canonical, runs_of_rows
from calibrate.import_runs import imported_runs
from calibrate.import_table_collectives import is_collectives, read_collectives
from calibrate.import_table_kernels import is_attention, is_gemms, read_attention, read_gemms
from calibrate.import_table_rows import TableRow
from calibrate.import_table_steps import is_steps, read_steps
from simulator.errors import InputError, Problem

_DELIMITERS = ",;\t|"
_FEWEST = 2
"""Columns of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of table: what its header has, and what reads its rows."""

    holds: Callable[[frozenset[str]], bool]
    read: Callable[[Sequence[TableRow], Path, ImportOptions], Imported]


_KINDS = (
    _Kind(holds=is_gemms, read=read_gemms),
    _Kind(holds=is_attention, read=read_attention),
    _Kind(holds=is_steps, read=read_steps),
    _Kind(holds=is_collectives, read=read_collectives),
)


def looks_like_table(text: str) -> bool:
    """Return whether the first line of a text is the header of a table of a known kind."""
    header, _ = _header(text)
    return _is_rccl(header) or _kind(header) is not None


def import_table(text: str, path: Path, options: ImportOptions) -> Imported:
    """Return a CSV file as calibration lines; rows that cannot be read are noted.

    Raises:
        InputError: no CSV, a column twice, or nothing in it that can be read.
    """
    header, delimiter = _header(text)
    numbered = _lines(text, delimiter, path)
    if _is_rccl(header):
        runs = runs_of_rows(canonical(header), numbered)
        return imported_runs(runs, path, options, "table of rccl-tests")
    repeated = [name for name, count in Counter(header).items() if count > 1 and name]
    if repeated:
        rule = "each column may stand in the header once"
        raise InputError(Problem(where=str(path), rule=rule, found=", ".join(repeated)))
    kind = _kind(header)
    assert kind is not None, "looks_like_table was asked before"
    rows = [_row(header, line, cells) for line, cells in numbered]
    if not rows:
        raise InputError(Problem(where=str(path), rule="has a header and no row"))
    return kind.read(rows, path, options)


def _header(text: str) -> tuple[tuple[str, ...], str]:
    """Return the names of the columns and what stands between them; comments come before."""
    for line in text.split("\n"):
        if line.strip() and not line.startswith("#"):
            delimiter = max(_DELIMITERS, key=line.count)
            try:
                cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
            except (csv.Error, StopIteration):
                break
            names = tuple(cell.strip().strip("\ufeff") for cell in cells)
            return (names if len(names) >= _FEWEST else ()), delimiter
    return (), ","


def _is_rccl(header: Sequence[str]) -> bool:
    return set(canonical(header)) >= NEEDED


def _kind(header: Sequence[str]) -> _Kind | None:
    columns = frozenset(name.lower() for name in header)
    return next((kind for kind in _KINDS if kind.holds(columns)), None)


def _lines(text: str, delimiter: str, path: Path) -> list[tuple[int, list[str]]]:
    """Return the cells of each line below the header, with its number."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    found: list[tuple[int, list[str]]] = []
    try:
        found.extend((reader.line_num, cells) for cells in reader if _says_something(cells))
    except csv.Error as error:
        if not found:
            raise InputError(Problem(where=str(path), rule=f"is no CSV: {error}")) from error
    return found[1:]


def _says_something(cells: Sequence[str]) -> bool:
    return any(map(str.strip, cells)) and not cells[0].startswith("#")


def _row(header: Sequence[str], line: int, cells: Sequence[str]) -> TableRow:
    problem = ""
    if len(cells) != len(header):
        problem = f"the row has {len(cells)} cells, the header {len(header)}"
    named = zip((name.lower() for name in header), cells, strict=False)
    return TableRow(line=line, cells=dict(named), problem=problem)
