"""Forecasts side by side, as `traincast sweep --json` and `compare --json` write them."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, Field

from planner.sweep.row import Outcome, Row
from reports.result_files.parts import Result, ResultRecord


class RowFacts(Row):
    """One forecast (docs/reference/sweep-rows.md); quantities that there are none of are None."""

    model_config = ConfigDict(extra="ignore")

    @property
    def runs(self) -> bool:
        """Whether there is a forecast of a step that fits."""
        return self.outcome is Outcome.OK and self.step_time_s is not None


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
