"""What a result file is: its kind and the format that it is written in."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class ResultKind(StrEnum):
    """What a result file holds; the value is its key `kind`."""

    STEP = "step"
    """`traincast simulate`."""
    PLAN = "plan"
    EXPLAIN = "explain"
    GOODPUT = "goodput"
    COMPARE = "compare"
    SWEEP = "sweep"
    VALIDATION = "validation"
    """`traincast validate`."""
    CALIBRATION = "calibration"
    """`traincast calibrate report`."""
    TRACE_COMPARISON = "trace_comparison"
    """`traincast trace compare`."""


FORMAT = 1
"""Raised when a key of any kind changes its meaning or goes; new keys leave it as it is."""

WRITERS = {
    ResultKind.STEP: "traincast simulate SCENARIO --json",
    ResultKind.PLAN: "traincast plan SCENARIO --json",
    ResultKind.EXPLAIN: "traincast explain SCENARIO --json",
    ResultKind.GOODPUT: "traincast goodput SCENARIO --json",
    ResultKind.COMPARE: "traincast compare SCENARIO... --json",
    ResultKind.SWEEP: "traincast sweep SWEEP --json",
    ResultKind.VALIDATION: "traincast validate ROWS.csv --json",
    ResultKind.CALIBRATION: "traincast calibrate report DIR --json",
    ResultKind.TRACE_COMPARISON: "traincast trace compare SIMULATED REAL --json",
}
"""What writes each kind."""


def result_of(kind: ResultKind, record: dict[str, Any]) -> dict[str, Any]:
    """Return a record as a result file holds it: its kind and format come first."""
    return {"kind": kind.value, "format": FORMAT, **record}
