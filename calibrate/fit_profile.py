"""Kernel tables of a file of fitted constants: read and replaced, all other tables left alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import AoT

from simulator.files import FileRecord, parse_record, read_text, read_toml, write_atomic
from simulator.hardware.accelerator import Dtype
from simulator.hardware.constants import FitRecord
from simulator.hardware.kernel_constants import (
    AttentionConstants,
    GemmConstants,
    MemoryBoundConstants,
)
from simulator.units import US

_NS = 1e-9
_SECONDS = " s"
"""How a record writes a time; nothing else that it writes ends so."""
_SHOWN = 6
"""More digits than a constant has: a file only changes the unit."""
_KERNEL_KEYS = ("gemm", "attention", "memory_bound")
_TABLES = (*_KERNEL_KEYS, "collectives", "fit")
_ASSUMED = "gemm.grouped"
"""A record of what no table here measures: it stays as it is written."""


class KernelBlocks(FileRecord):
    """The kernel tables of one file of fitted constants."""

    gemm: dict[Dtype, GemmConstants]
    attention: AttentionConstants
    memory_bound: MemoryBoundConstants


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedKernels:
    """Kernel tables and how each of them was found."""

    blocks: KernelBlocks
    records: tuple[FitRecord, ...]


def read_kernels(path: Path) -> KernelBlocks:
    """Return the kernel tables of a file of fitted constants.

    Raises:
        InputError: one of them is missing or wrong.
    """
    content = read_toml(path)
    tables = {name: content.get(name) for name in KernelBlocks.model_fields if name in content}
    return parse_record(KernelBlocks, tables, str(path))


def write_kernels(path: Path, accelerator: str, kernels: FittedKernels) -> None:
    """Replace the kernel tables of a file and their `[[fit]]` records; keep everything else."""
    rest = tomlkit.parse(read_text(path)) if path.exists() else tomlkit.document()
    top = {key: rest[key] for key in list(rest) if key not in _TABLES}
    for key in (*_KERNEL_KEYS, *top):
        if key in rest:
            rest.remove(key)
    records = rest.setdefault("fit", tomlkit.aot())
    assert isinstance(records, AoT)
    _replace_records(records, kernels.records)
    blocks = _written(kernels.blocks.model_dump(mode="json"))
    own = {**top, "accelerator": accelerator, **blocks}
    write_atomic(path, tomlkit.dumps(own) + "\n" + tomlkit.dumps(rest).lstrip("\n"))


def _replace_records(records: AoT, new: Sequence[FitRecord]) -> None:
    """Drop the records of kernel tables and append the new ones."""
    for index in reversed(range(len(records))):
        what = str(records[index]["what"])
        if what.startswith(_KERNEL_KEYS) and what != _ASSUMED:
            del records[index]
    for record in new:
        table = tomlkit.table()
        table.update(record.model_dump(mode="json", exclude_defaults=True))
        records.append(table)


def _written(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record's values as a file shows them: times in us or ns, absent values left out."""
    return {key: _shown(value) for key, value in values.items() if value not in (None, {})}


def _shown(value: Any) -> Any:
    match value:
        case dict():
            return _written(value)
        case str() if value.endswith(_SECONDS):
            return _time(float(value.removesuffix(_SECONDS)))
        case _:
            return value


def _time(seconds: float) -> str:
    if 0 < seconds < US:
        return f"{seconds / _NS:.{_SHOWN}g} ns"
    return f"{seconds / US:.{_SHOWN}g} us"
