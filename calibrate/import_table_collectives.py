"""Tables of measured collectives: one size of one operation a row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from calibrate.import_options import Imported, ImportOptions
from calibrate.import_runs import imported_runs
from calibrate.import_samples import Facts, Printed, Run, Sample, printed
from calibrate.import_table_rows import TableRow
from calibrate.import_words import collective_of, wire_dtype
from calibrate.validation.cells import Row, SkippedRowError
from simulator.errors import InputError, Problem
from simulator.units import GB, GIB, KIB, MIB, MS, US

_TIMES = {"time_us": US, "time_ms": MS, "time_s": 1.0, "latency_us": US, "time": US}
_RANKS = ("gpus", "ranks", "nranks", "world_size", "num_gpus", "n_gpus")
_PER_NODE = ("gpus_per_node", "ranks_per_node", "ranks_pernode")
_SIZES = ("bytes", "size", "size_bytes", "message_bytes", "msg_size")
_OPERATIONS = ("op", "collective", "operation")
_MACHINES = ("gpu", "accelerator", "hardware", "device")
_VERSIONS = ("reported_version", "nccl_version", "rccl_version")
_USED = frozenset((*_TIMES, *_RANKS, *_PER_NODE, *_SIZES, *_OPERATIONS, *_MACHINES, *_VERSIONS)) | {
    "nodes",
    "dtype",
    "busbw",
    "algbw",
}
_SIZE_IN_NAME = re.compile(r"(?<![A-Za-z0-9.])(\d{1,9}(?:\.\d{1,9})?) ?([KMG]i?B)(?![A-Za-z0-9])")
_UNITS = {"KB": 1e3, "MB": 1e6, "GB": GB, "KiB": KIB, "MiB": MIB, "GiB": GIB}


def is_collectives(columns: frozenset[str]) -> bool:
    """Return whether a header is that of a table of collectives."""
    ranks = columns.intersection(_RANKS) or ("nodes" in columns and columns.intersection(_PER_NODE))
    return bool(ranks and columns.intersection(_TIMES))


def read_collectives(rows: Sequence[TableRow], path: Path, options: ImportOptions) -> Imported:
    """Return the rows as calibration lines; a size that no column has is asked for.

    Raises:
        InputError: something is missing that no column, option or file name says.
    """
    notes: list[tuple[int, str]] = []
    size, found_in_name = _size(rows, path, options)
    if found_in_name:
        notes.append((rows[0].line, f"derived: {size:.0f} bytes from the file's name"))
    unused = sorted(set(rows[0].cells) - _USED)
    if unused:
        notes.append((rows[0].line, "columns that are not used: " + ", ".join(unused)[:200]))
    sweeps: dict[tuple[Facts, str], list[Sample]] = {}
    for row in rows:
        try:
            if row.problem:
                raise SkippedRowError(row.problem)
            facts, sample = _sample(Row(row.cells), row.line, size)
            sweeps.setdefault((facts, sample.dtype), []).append(sample)
        except SkippedRowError as error:
            notes.append((row.line, f"left out: {error}"))
    runs = [Run(facts=facts, samples=tuple(s)) for (facts, _), s in sweeps.items()]
    if not runs:
        problems = [Problem(where=str(path), key=f"line {n}", rule=rule) for n, rule in notes]
        raise InputError(*problems)
    runs[0] = replace(runs[0], notes=tuple(notes))
    return imported_runs(runs, path, options, "table of collectives")


def _size(
    rows: Sequence[TableRow], path: Path, options: ImportOptions
) -> tuple[float | None, bool]:
    """Return the size of all rows where no column has it, and whether the name says it."""
    if set(rows[0].cells).intersection(_SIZES):
        return None, False
    if options.bytes is not None:
        return options.bytes, False
    named = size_in(path.stem)
    if named is None:
        rule = "has no column for the size of a collective"
        fix = '--bytes "1 GiB", or a column `bytes`'
        raise InputError(Problem(where=str(path), key="header", rule=rule, fix=fix))
    return named, True


def size_in(name: str) -> float | None:
    """Return the one size that a file's name holds, bytes.

    >>> size_in("ring_allreduce_1.6GB"), size_in("run_2")
    (1600000000.0, None)
    """
    found = set(_SIZE_IN_NAME.findall(name.replace("_", " ")))
    if len(found) != 1:
        return None
    number, unit = found.pop()
    return float(number) * _UNITS[unit]


def _sample(row: Row, line: int, size: float | None) -> tuple[Facts, Sample]:
    column = next(name for name in _TIMES if row.known(name) or name == "time")
    word = _first(row, _OPERATIONS)
    collective = collective_of(word)
    if word and collective is None:
        raise SkippedRowError(f"{word[:40]!r} is no collective that is simulated")
    dtype = wire_dtype(row.text("dtype"))
    version = _first(row, _VERSIONS)
    facts = Facts(
        collective=collective,
        ranks=_ranks(row),
        nodes=row.integer("nodes") if row.known("nodes") else None,
        accelerator=_first(row, _MACHINES) or None,
        library=version or None,
    )
    sample = Sample(
        line=line,
        bytes=row.number(next(s for s in _SIZES if row.known(s))) if size is None else size,
        time=_printed(row, column, _TIMES[column]),
        dtype=dtype[0] if dtype else row.text("dtype"),
        algbw=_rate(row, "algbw"),
        busbw=_rate(row, "busbw"),
    )
    return facts, sample


def _ranks(row: Row) -> int | None:
    said = next((name for name in _RANKS if row.known(name)), None)
    if said is not None:
        return row.integer(said)
    each = next((name for name in _PER_NODE if row.known(name)), None)
    if each is None or not row.known("nodes"):
        return None
    return row.integer(each) * row.integer("nodes")


def _first(row: Row, columns: Sequence[str]) -> str:
    return next((row.text(column) for column in columns if row.known(column)), "")


def _printed(row: Row, column: str, unit: float) -> Printed:
    row.number(column)
    number = printed(row.text(column))
    if number is None:
        raise row.bad(column, "a number")
    return number.times(unit)


def _rate(row: Row, column: str) -> Printed | None:
    number = printed(row.text(column))
    return None if number is None else number.times(GB)
