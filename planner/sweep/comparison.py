"""Scenarios side by side: what tells them apart, and how far apart their forecasts are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.sweep.cases import Case
from planner.sweep.row import Row
from planner.sweep.run import Swept

COMPARED = (
    "accelerators",
    "step_time_s",
    "tokens_per_s",
    "tokens_per_s_per_accelerator",
    "mfu",
    "peak_memory_bytes",
    "steps",
    "days",
    "accelerator_hours",
    "cost",
    "run_days_p50",
    "run_cost",
    "run_energy_kwh",
    "run_co2_kg",
)
"""Columns of a row that have a difference and a ratio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A key that is not the same in all scenarios; None where a scenario has no such key."""

    key: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """A quantity of a scenario against that of the first; None where one of them has none."""

    difference: float | None
    ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Scenarios with their forecasts; the first is what the others are compared with."""

    cases: tuple[Case, ...]
    rows: tuple[Row, ...]
    changed: tuple[Changed, ...]
    """What the scenarios were asked, where they differ."""
    notes: tuple[str, ...] = ()

    def against_first(self, number: int) -> dict[str, Against]:
        """Return each compared quantity of a scenario against that of the first."""
        first, other = self.rows[0], self.rows[number]
        both = first.runs and other.runs
        return {
            name: _against(getattr(first, name), getattr(other, name)) if both else _NONE
            for name in COMPARED
        }


_NONE = Against(difference=None, ratio=None)


def compare_rows(swept: Swept) -> Comparison:
    """Return the comparison of forecast scenarios."""
    return Comparison(
        cases=swept.cases,
        rows=swept.rows,
        changed=tuple(_changed(swept.cases)),
        notes=(*swept.notes, *_notes(swept)),
    )


def _against(first: float | None, other: float | None) -> Against:
    if first is None or other is None:
        return _NONE
    return Against(difference=other - first, ratio=other / first if first else None)


def _changed(cases: tuple[Case, ...]) -> Iterator[Changed]:
    """Yield the keys in which the scenarios differ, as they stand in their files."""
    tables = [dict(_flat(_asked(case))) for case in cases]
    for key in dict.fromkeys(key for table in tables for key in table):
        values = tuple(table.get(key) for table in tables)
        if any(value != values[0] for value in values):
            yield Changed(key=key, values=values)


def _asked(case: Case) -> dict[str, Any]:
    """Return what a scenario asks for; its title and its layout are told with its forecast."""
    file = case.scenario.file.model_dump(mode="json", exclude_unset=True)
    return {key: value for key, value in file.items() if key not in ("title", "layout")}


def _flat(table: Mapping[str, Any], inside: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{inside}{key}.")
        else:
            yield inside + key, value


def _notes(swept: Swept) -> Iterator[str]:
    """Yield what a reader of the table has to know so as not to be misled."""
    rows = [row for row in swept.rows if row.runs]
    if len({(row.global_batch_size, row.seq_length) for row in rows}) > 1:
        yield "steps have different numbers of tokens: compare tokens a second or days"
    if len({row.model for row in rows}) > 1:
        yield "the models differ: a token of one is not worth a token of another"
    if len({case.scenario.file.job.tokens for case in swept.cases}) > 1:
        yield "the runs have different numbers of tokens: days and cost are not of the same work"
    if len({row.currency for row in rows if row.cost is not None}) > 1:
        yield "costs are in different currencies, and their ratios mean nothing"
    first = swept.rows[0]
    for number, row in enumerate(swept.rows[1:], start=2):
        if first.runs and row.runs and _overlap(first, row):
            yield (
                f"the intervals of 1 and {number} overlap: which is faster is not certain, though "
                "errors of a stack or machine that both share cancel in the ratio"
            )


def _overlap(first: Row, other: Row) -> bool:
    """Return whether the 80 % intervals of the time a token overlap."""
    (low, high), (other_low, other_high) = _token_time(first), _token_time(other)
    return low <= other_high and other_low <= high


def _token_time(row: Row) -> tuple[float, float]:
    assert row.low_s is not None, "it runs"
    assert row.high_s is not None, "it runs"
    tokens = row.global_batch_size * row.seq_length
    return row.low_s / tokens, row.high_s / tokens
