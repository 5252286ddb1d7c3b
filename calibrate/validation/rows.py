"""Reading a table of measurements: which kind it is, and its rows as text."""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from simulator.errors import InputError, Problem
from simulator.files import read_text


class Kind(StrEnum):
    """What the rows of a table are measurements of."""

    STEPS = "steps"
    COLLECTIVES = "collectives"
    GEMMS = "gemms"
    ATTENTION = "attention"


GEMM_TIME = ("time_us", "t")
"""Columns that hold a GEMM's time in microseconds."""
_STEP_COLUMNS = frozenset(
    (
        "hardware",
        "gpus",
        "framework",
        "model",
        "layers",
        "hidden",
        "seq_len",
        "global_batch",
        "step_time_s",
        "tokens_per_s_per_gpu",
    )
)
_ENOUGH_STEP_COLUMNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRow:
    """One row as text."""

    cells: Mapping[str, str]
    problem: str = ""
    """Why the row cannot be read; empty where it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of measurements."""

    path: Path
    kind: Kind
    rows: tuple[RawRow, ...]
    sha256: str
    """Of the text of the file."""


def read_table(path: Path | str) -> Table:
    """Return the rows of a CSV file of measurements.

    Columns that are missing are unknown; a row with more or fewer cells than the header is kept
    with its problem.

    Raises:
        InputError: not a readable text file, not a CSV file, a column twice, or no known kind.
    """
    path = Path(path)
    text = read_text(path)
    try:
        lines = [line for line in csv.reader(io.StringIO(text)) if any(map(str.strip, line))]
    except csv.Error as error:
        raise InputError(Problem(where=str(path), rule=f"is not valid CSV: {error}")) from error
    if not lines:
        raise InputError(Problem(where=str(path), rule="must have a header and rows"))
    header = [name.strip() for name in lines[0]]
    _check_header(header, path)
    return Table(
        path=path,
        kind=_kind(header, path),
        rows=tuple(_row(header, line) for line in lines[1:]),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )


def _check_header(header: list[str], path: Path) -> None:
    repeated = [name for name, count in Counter(header).items() if count > 1]
    if repeated:
        found = ", ".join(name or "(empty)" for name in repeated)
        rule = "each column may stand in the header once"
        raise InputError(Problem(where=str(path), key="header", rule=rule, found=found))


def _kind(header: list[str], path: Path) -> Kind:
    columns = set(header)
    timed = bool(columns.intersection(GEMM_TIME))
    if {"m", "n", "k"} <= columns and timed:
        return Kind.GEMMS
    if {"batch_size", "seq_len", "num_heads", "head_dim", "time_us"} <= columns:
        return Kind.ATTENTION
    if {"gpus", "bytes", "time_us"} <= columns:
        return Kind.COLLECTIVES
    if len(columns & _STEP_COLUMNS) >= _ENOUGH_STEP_COLUMNS:
        return Kind.STEPS
    raise InputError(
        Problem(
            where=str(path),
            key="header",
            found=", ".join(header)[:200],
            rule="is not a table of a known kind",
            fix="steps: " + ", ".join(sorted(_STEP_COLUMNS)) + "; collectives: gpu, op, gpus, "
            "nodes, bytes, time_us; GEMMs: dtype, m, n, k, time_us; attention: batch_size, "
            "seq_len, num_heads, num_key_value_heads, head_dim, time_us",
        )
    )


def _row(header: list[str], line: list[str]) -> RawRow:
    problem = ""
    if len(line) != len(header):
        problem = f"the row has {len(line)} cells, the header {len(header)}"
    return RawRow(cells=dict(zip(header, line, strict=False)), problem=problem)
