"""How good forecasts of modern runs should be, group by group, and what keeps the others back.

One list for the test that holds the errors where they are and for the page that shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TypeAlias

from calibrate.validation.metrics import SLOW
from calibrate.validation.records import RowResult
from calibrate.validation.rows import read_table

Cells: TypeAlias = Mapping[str, str]
_LONG = 16_384
"""Tokens from which a sequence counts as long."""
_ENOUGH = ("A", "B")
"""Completeness of rows that can be simulated without guessing more than one or two things."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An error that forecasts of some rows should stay below, and what it was when last looked."""

    file: str
    """Name of a table of steps, without its folder and ending."""
    of: Callable[[Cells], bool]
    limit: float
    now: float
    memory: bool = False
    """The mean over reported peaks of memory, not the median over step times."""
    causes: str = ""
    """What the rows have in common that are furthest off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The error of the rows of a target: |predicted / measured - 1|."""

    rows: int
    error: float
    """Mean for memory, median for step times."""
    without_slow: float
    """The same over the rows that were not measured more than twice slower than predicted."""
    slow: int
    bias: float
    """Median of the signed errors."""


def _model(*names: str) -> Callable[[Cells], bool]:
    return lambda cells: any(name.lower() in cells["model"].lower() for name in names)


def _any(_: Cells) -> bool:
    return True


def _sparse(cells: Cells) -> bool:
    return bool(cells["experts"])


TARGETS: Mapping[str, Target] = {
    "Megatron-Bridge, dense": Target(
        file="nvidia_bridge",
        of=lambda cells: not _sparse(cells),
        limit=0.08,
        now=0.048,
        causes="NVFP4 is 6-14 % too fast: no fp4 kernel was measured, and fp4 takes the shares "
        "of the peak that fp8 reaches. Fine-tuning of Llama 2 13B over four stages is 18 % too "
        "slow: the table names no virtual stages.",
    ),
    "Megatron-Bridge, mixtures of experts": Target(
        file="nvidia_bridge",
        of=_sparse,
        limit=0.12,
        now=0.06,
        causes="One layout takes 51 s in release 26.02, 29 s in 26.02.01, another 2.8 s in 26.06, "
        "4.5 s in 26.06.01: the slow ones are 38-54 % too fast.",
    ),
    "DGX Cloud, fp8": Target(
        file="nvidia_dgxc",
        of=lambda cells: "fp8" in cells["precision"],
        limit=0.07,
        now=0.056,
        causes="Grok-1 is 7-18 % too fast, Llama 3.1 70B over eight stages 7-10 % too slow; one "
        "set of constants stands for releases that differ by 3-6 %.",
    ),
    "DGX Cloud, Grok-1": Target(file="nvidia_dgxc", of=_model("grok"), limit=0.10, now=0.076),
    "MLPerf, GPT-3 and Llama 3.1 405B": Target(
        file="mlperf",
        of=_model("GPT-3", "405B"),
        limit=0.08,
        now=0.039,
        causes="Rounds differ: GPT-3 175B on 512 H100 took 12.1 s a step in v3.0, 9.5 s in v4.1, "
        "of which the layouts explain a quarter.",
    ),
    "MLPerf, Llama 2 70B LoRA": Target(
        file="mlperf",
        of=_model("LoRA"),
        limit=0.10,
        now=0.075,
        causes="Rounds and submitters differ by 15 % on the same hardware and layout. The AMD "
        "submissions are 23 % too fast: no kernel of these GPUs was measured.",
    ),
    "SimuMax, peak memory": Target(
        file="simumax_b200", of=_any, limit=0.04, now=0.024, memory=True
    ),
    "long sequences": Target(
        file="misc", of=lambda cells: float(cells["seq_len"] or 0) >= _LONG, limit=0.10, now=0.086
    ),
}


def reached(target: Target, rows: Iterable[tuple[Cells, RowResult]]) -> Reached:
    """Return how far forecasts are off, of those of a table's rows that a target is about."""
    wanted = [row for cells, row in rows if target.of(cells)]
    pairs = [row.memory if target.memory else row.pair for row in wanted]
    signed = [pair.signed_error for pair in pairs if pair is not None]
    # Measured more than SLOW times slower is an error below 1 / SLOW - 1.
    kept = [error for error in signed if error >= 1 / SLOW - 1]
    centre = fmean if target.memory else median
    return Reached(
        rows=len(signed),
        error=_centre(centre, signed),
        without_slow=_centre(centre, kept),
        slow=len(signed) - len(kept),
        bias=median(signed) if signed else 0.0,
    )


def rows_that_say_enough(
    path: Path, results: Sequence[RowResult]
) -> tuple[tuple[Cells, RowResult], ...]:
    """Return the rows of a table of steps of completeness A and B, with their forecasts.

    `results` has one for each row of the table, in order. Rows that fitted a stack have none.

    Raises:
        InputError: the table cannot be read.
    """
    rows = zip(read_table(path).rows, results, strict=True)
    return tuple((raw.cells, row) for raw, row in rows if raw.cells["completeness"] in _ENOUGH)


def _centre(centre: Callable[[Iterable[float]], float], signed: Iterable[float]) -> float:
    errors = [abs(error) for error in signed]
    return centre(errors) if errors else 0.0
