"""What a step row reports: its time, its memory, and whether the run failed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from calibrate.validation.cells import Row, SkippedRowError
from simulator.results import MemoryUse
from simulator.units import GB, GIB

_FAILED = re.compile(r"oom|out of memory|crash|fail|timeout", re.I)
_SUSPECT = re.compile(r"suspect|invalid|unreliable", re.I)
_DECIMAL = re.compile(r"\s*GB\b")
"""Units that are said to be decimal; PyTorch and nvidia-smi count in powers of two."""
_NOT_MEASURED = re.compile(r"modelled|modeled|estimate", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedMemory:
    """A reported peak, and which part of a forecast it should be compared with."""

    size: float
    """Bytes."""
    of: Callable[[MemoryUse], float]


def refuse_suspect(row: Row) -> None:
    """Raise `SkippedRowError` where the table itself marks a row as not to be trusted."""
    if _SUSPECT.search(row.text("status")):
        raise SkippedRowError(f"status: the table marks the row as {row.text('status')[:40]!r}")


def failed(row: Row) -> bool:
    """Return whether a row says that its run ran out of memory or crashed."""
    return bool(_FAILED.search(row.text("status")))


def measured_step_time(row: Row) -> float | None:
    """Return the seconds a step took, from the tokens a second where no time is given."""
    seconds = row.optional_number("step_time_s")
    rate = row.optional_number("tokens_per_s_per_gpu")
    batch = ("global_batch", "seq_len", "gpus")
    if seconds is not None or rate is None or not all(row.known(column) for column in batch):
        return seconds
    row.assume("step time from tokens_per_s_per_gpu")
    sequences, length, gpus = (row.integer(column) for column in batch)
    return sequences * length / (rate * gpus)


def measured_memory(row: Row) -> ReportedMemory | None:
    """Return the peak memory a row reports, in the convention that it names."""
    size = row.optional_number("peak_memory_gb")
    kind = row.text("memory_kind")
    if size is None or _NOT_MEASURED.search(kind):
        return None
    unit = GB if _DECIMAL.match(kind) else GIB
    return ReportedMemory(size=size * unit, of=_convention(kind))


def _convention(kind: str) -> Callable[[MemoryUse], float]:
    """Return what the first known word of `kind` counts."""
    words = re.findall(r"nvidia-smi|allocated|reserved|max_memory\b", kind, re.I)
    first = words[0].lower() if words else "reserved"
    if first == "allocated":
        return lambda use: use.allocated
    if first == "nvidia-smi":
        return lambda use: use.reserved
    return lambda use: use.allocated + use.fragmentation
