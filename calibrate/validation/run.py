"""Validation of a table: predict every row, compare, and say which rows were not predicted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from calibrate.validation.attention import AttentionForecasts
from calibrate.validation.cells import Row
from calibrate.validation.collectives import CollectiveForecasts
from calibrate.validation.gemms import GemmForecasts
from calibrate.validation.groups import groups_of
from calibrate.validation.records import (
    Group,
    Quantity,
    RowResult,
    Statistics,
    Status,
    Validation,
)
from calibrate.validation.rows import Kind, RawRow, Table, read_table
from calibrate.validation.steps import StepForecasts
from simulator.hardware.profile import Profile


class Forecasts(Protocol):
    """Forecasts rows of one kind, and remembers what it used for them."""

    stacks: set[str]

    @property
    def profiles(self) -> Sequence[Profile]:
        """The machines that were used."""

    def predict(self, rows: Sequence[tuple[str, Row]]) -> list[RowResult]:
        """Return the forecast of each named row, or why there is none, in order."""


def validate_rows(
    path: Path | str, profile: str | None = None, stack: str | None = None
) -> Validation:
    """Return every row of a CSV file of measurements beside its forecast.

    `profile` and `stack` (a shipped name or a .toml file) take the place of what the rows name.

    Raises:
        InputError: the file cannot be read or is of no known kind; no such profile or stack.
    """
    table = read_table(path)
    quantity, forecasts = _forecasts(table, profile, stack)
    named = [(_name(raw, index), raw) for index, raw in enumerate(table.rows)]
    rows = [_unreadable(name, raw, quantity) for name, raw in named]
    good = [index for index, row in enumerate(rows) if row is None]
    predicted = forecasts.predict([(named[i][0], Row(named[i][1].cells)) for i in good])
    results = dict(enumerate(rows)) | dict(zip(good, predicted, strict=True))
    ordered = [row for row in results.values() if row is not None]
    provenance = {
        "traincast": _version(),
        "file": str(path),
        "file_sha256": table.sha256,
        "kind": table.kind.value,
        "profile_override": profile,
        "stack_override": stack,
        "profiles": {used.name: used.sha256 for used in forecasts.profiles},
        "stacks": sorted(forecasts.stacks),
        "fitted_on_this_file": _fitted_on(table, forecasts.profiles),
    }
    return Validation(rows=tuple(ordered), groups=groups_of(ordered), provenance=provenance)


def to_json(validation: Validation) -> dict[str, Any]:
    """Return a validation as plain values: numbers are finite or None.

    `rows`: id, status, reason, quantity, unit, measured, predicted, signed_error, low, high,
    peak_memory_bytes, measured_peak_memory_bytes, feasible, assumed, labels, source. `groups`: by,
    quantity, unit, rows, predicted, skipped, statistics, slow, slow_share, without_slow,
    rank_correlation, regret, feasibility.
    """
    return {
        "rows": [_row(row) for row in validation.rows],
        "groups": [_group(group) for group in validation.groups],
        "provenance": dict(validation.provenance),
    }


def _forecasts(table: Table, profile: str | None, stack: str | None) -> tuple[Quantity, Forecasts]:
    match table.kind:
        case Kind.STEPS:
            return Quantity.STEP_TIME, StepForecasts(profile, stack)
        case Kind.COLLECTIVES:
            return Quantity.COLLECTIVE_TIME, CollectiveForecasts(profile)
        case Kind.GEMMS:
            return Quantity.GEMM_TIME, GemmForecasts(profile, table.path.stem)
        case Kind.ATTENTION:
            return Quantity.ATTENTION_TIME, AttentionForecasts(profile, table.path.stem)


def _name(raw: RawRow, index: int) -> str:
    """Return a row's id, or its number from 0 where it has none."""
    return raw.cells.get("id", "").strip() or str(index)


def _unreadable(name: str, raw: RawRow, quantity: Quantity) -> RowResult | None:
    if not raw.problem:
        return None
    return RowResult(id=name, status=Status.SKIPPED, quantity=quantity, reason=raw.problem)


def _fitted_on(table: Table, profiles: Sequence[Profile]) -> list[str]:
    """Return the blocks of constants whose fit used the table itself, by its file name."""
    return [
        f"{profile.name}: {record.what}"
        for profile in profiles
        for record in profile.constants.fit
        if table.path.name in record.source
    ]


def _row(row: RowResult) -> dict[str, Any]:
    return {
        "id": row.id,
        "status": row.status.value,
        "reason": row.reason,
        "quantity": row.quantity.value,
        "unit": row.quantity.unit,
        "measured": _finite(row.measured),
        "predicted": _finite(row.predicted),
        "signed_error": _finite(row.signed_error),
        "low": _finite(row.low),
        "high": _finite(row.high),
        "peak_memory_bytes": _finite(row.peak_memory),
        "measured_peak_memory_bytes": None if row.memory is None else row.memory.measured,
        "feasible": row.feasible,
        "assumed": list(row.assumed),
        "labels": dict(row.labels or {}),
        "source": row.source,
    }


def _group(group: Group) -> dict[str, Any]:
    compared = group.statistics.count if group.statistics else 0
    return {
        "name": group.name,
        "by": dict(group.by),
        "quantity": group.quantity.value,
        "unit": group.quantity.unit,
        "rows": group.rows,
        "predicted": group.rows - group.skipped,
        "skipped": group.skipped,
        "compared": compared,
        "statistics": _statistics(group.statistics),
        "slow": group.slow,
        "slow_share": group.slow / compared if compared else None,
        "without_slow": _statistics(group.without_slow),
        "rank_correlation": _finite(group.rank_correlation),
        "regret": _values(asdict(group.regret)) if group.regret else None,
        "feasibility": asdict(group.feasibility) if group.feasibility else None,
    }


def _statistics(statistics: Statistics | None) -> dict[str, Any] | None:
    return _values(asdict(statistics)) if statistics else None


def _values(record: Mapping[str, Any]) -> dict[str, Any]:
    return {k: _finite(v) if isinstance(v, float) else v for k, v in record.items()}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _version() -> str:
    try:
        return version("traincast")
    except PackageNotFoundError:
        return "not installed"
