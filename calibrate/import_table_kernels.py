"""Tables of measured kernels: one matrix product or one attention call a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

from calibrate.import_options import Imported, ImportOptions
from calibrate.import_records import Measured
from calibrate.import_table_rows import ReadRow, TableRow, imported_rows, read_rows
from calibrate.import_words import dtype_of
from calibrate.kernel_tables import LAYOUTS
from calibrate.points import AttentionPoint, GemmPoint
from calibrate.records import Status
from calibrate.validation.attention import maybe_windowed
from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.machines import Machines
from calibrate.validation.rows import GEMM_TIME
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout
from simulator.units import US

_LARGEST = 2**24
"""Of a dimension, as in validation."""
_ATTENTION = frozenset(("batch_size", "seq_len", "num_heads", "head_dim", "time_us"))


def is_gemms(columns: frozenset[str]) -> bool:
    """Return whether a header is that of a table of matrix products."""
    return columns >= {"m", "n", "k"} and bool(columns.intersection(GEMM_TIME))


def is_attention(columns: frozenset[str]) -> bool:
    """Return whether a header is that of a table of attention calls."""
    return columns >= _ATTENTION


def read_gemms(rows: Sequence[TableRow], path: Path, options: ImportOptions) -> Imported:
    """Return the rows as calibration lines.

    Tables with a layout column were timed in training runs (sustained), others in bursts.
    """
    machine = _machine(path.stem, options)
    found, problems = read_rows(rows, partial(_gemm, machine), path)
    return imported_rows(found, problems, path, "table of matrix products")


def read_attention(rows: Sequence[TableRow], path: Path, options: ImportOptions) -> Imported:
    """Return the rows as calibration lines; those that may have had a window are rejected."""
    machine = _machine(path.stem, options)
    windowed = maybe_windowed([Row(row.cells) for row in rows])
    reasons = {rows[place].line: reason for place, reason in windowed.items()}
    found, problems = read_rows(rows, partial(_attention, machine, reasons), path)
    return imported_rows(found, problems, path, "table of attention calls")


def _machine(stem: str, options: ImportOptions) -> Callable[[Row], str | None]:
    """Return what names the accelerator of a row: the option, its cell, or the file's name."""

    def named(row: Row) -> str | None:
        if options.accelerator is not None:
            return options.accelerator
        return row.text("gpu") or _by_name(stem)

    return named


@cache
def _by_name(stem: str) -> str | None:
    try:
        return Machines().of_file(stem).accelerator.name
    except SkippedRowError:
        return None


def _gemm(machine: Callable[[Row], str | None], row: Row, line: int) -> ReadRow:
    if row.known("b") and row.integer("b") > 1:
        raise SkippedRowError(f"b: {row.integer('b')} products in one call are no single product")
    letters = row.text("layout").upper()
    if letters and letters not in LAYOUTS:
        raise row.bad("layout", "one of " + ", ".join(LAYOUTS))
    m, n, k = (row.integer(axis, largest=_LARGEST) for axis in ("m", "n", "k"))
    column = next((name for name in GEMM_TIME if row.known(name)), GEMM_TIME[0])
    point = GemmPoint(
        dtype=_dtype(row),
        m=m,
        n=n,
        k=k,
        layout=LAYOUTS[letters] if letters else GemmLayout.FORWARD,
        accumulate=row.text("acc").lower() == "true" and row.text("out").lower() == "fp32",
        sustained=bool(letters),
    )
    measured = Measured(point=point, seconds=row.number(column) * US, line=line)
    return ReadRow(accelerator=machine(row), measured=measured, notes=tuple(row.assumed))


def _attention(
    machine: Callable[[Row], str | None], windowed: dict[int, str], row: Row, line: int
) -> ReadRow:
    heads = row.integer("num_heads", largest=_LARGEST)
    kv_heads = row.integer("num_key_value_heads", heads)
    if heads % kv_heads:
        raise SkippedRowError(f"num_key_value_heads: {kv_heads} do not divide {heads} heads")
    point = AttentionPoint(
        dtype=_dtype(row),
        batch=row.integer("batch_size", largest=_LARGEST),
        seq=row.integer("seq_len", largest=_LARGEST),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=row.integer("head_dim", largest=_LARGEST),
    )
    row.assume("causal forward passes that also write an inference cache")
    reason = windowed.get(line, "")
    measured = Measured(
        point=point,
        seconds=row.number("time_us") * US,
        line=line,
        status=Status.REJECTED if reason else Status.OK,
        reason=reason,
    )
    return ReadRow(accelerator=machine(row), measured=measured, notes=tuple(row.assumed))


def _dtype(row: Row) -> Dtype:
    word = row.text("dtype")
    if not word:
        row.assume("dtype = bf16")
        return Dtype.BF16
    dtype = dtype_of(word)
    if dtype is None:
        raise row.bad("dtype", "a known number format")
    return dtype
