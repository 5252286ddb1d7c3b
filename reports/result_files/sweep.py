"""Forecasts side by side, as `traincast sweep --json` and `compare --json` write them."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from reports.result_files.parts import Layout, Result, ResultRecord


class RowFacts(ResultRecord):
    """One forecast (docs/reference/sweep-rows.md); quantities that there are none of are None."""

    outcome: str
    reason: str = ""
    method: str = ""
    model: str = ""
    profile: str = ""
    stack: str = ""
    precision: str = ""
    accelerators: int = 0
    global_batch_size: int = 0
    seq_length: int = 0
    layout: str = ""
    axes: Layout = Field(default_factory=dict)
    step_time_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    tokens_per_s: float | None = None
    tokens_per_s_per_accelerator: float | None = None
    mfu: float | None = None
    peak_memory_bytes: float | None = None
    memory_capacity_bytes: float | None = None
    exposed_communication_s: float | None = None
    bubble_s: float | None = None
    bottleneck: str = ""
    days: float | None = None
    days_low: float | None = None
    days_high: float | None = None
    accelerator_hours: float | None = None
    cost: float | None = None
    currency: str = ""
    run_days_p10: float | None = None
    run_days_p50: float | None = None
    run_days_p90: float | None = None
    run_goodput: float | None = None
    run_cost: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether there is a forecast of a step that fits."""
        return self.outcome == "ok" and self.step_time_s is not None


class SweepRow(RowFacts):
    """The forecast of one combination of values."""

    values: dict[str, Any]
    """Key -> value."""


class SweepFile(Result):
    """Every combination of a sweep."""

    title: str
    keys: tuple[str, ...]
    rows: tuple[SweepRow, ...]
    notes: tuple[str, ...] = ()


class AgainstFacts(ResultRecord):
    """A quantity against that of the first scenario."""

    difference: float | None = None
    ratio: float | None = None


class ComparedRow(RowFacts):
    """The forecast of one scenario."""

    scenario: str
    title: str
    against_first: dict[str, AgainstFacts] = Field(default_factory=dict)


class ChangedKey(ResultRecord):
    """A key in which the scenarios differ, with the value of each."""

    key: str
    values: tuple[Any, ...]


class CompareFile(Result):
    """Scenarios side by side; the first is what the others are compared with."""

    scenarios: tuple[ComparedRow, ...]
    changed: tuple[ChangedKey, ...] = ()
    notes: tuple[str, ...] = ()
