"""Sweeps and comparisons as plain values: what `--json` writes, and rows of a table.

Keys carry their unit: `_s` seconds, `_bytes` bytes, shares are fractions of 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from planner.sweep.comparison import COMPARED, Comparison
from planner.sweep.row import Row
from planner.sweep.run import Swept
from reports.result_kinds import ResultKind, result_of

_LAYOUT = "axes"


def sweep_record(swept: Swept, title: str) -> dict[str, Any]:
    """Return a sweep as plain values."""
    keys = dict.fromkeys(key for case in swept.cases for key in case.values)
    record = {
        "title": title,
        "keys": list(keys),
        "rows": [
            {"values": plain_values(case.values), **row.model_dump(mode="json")}
            for case, row in zip(swept.cases, swept.rows, strict=True)
        ],
        "kept": swept.kept,
        "notes": list(swept.notes),
    }
    return result_of(ResultKind.SWEEP, record)


def comparison_record(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as plain values; `against_first` of the first scenario is of itself."""
    record = {
        "scenarios": [
            {
                "scenario": case.scenario.where,
                "title": case.scenario.title,
                **row.model_dump(mode="json"),
                "against_first": {
                    name: asdict(against)
                    for name, against in comparison.against_first(place).items()
                },
            }
            for place, (case, row) in enumerate(zip(comparison.cases, comparison.rows, strict=True))
        ],
        "changed": [
            {"key": changed.key, "values": list(changed.values)} for changed in comparison.changed
        ],
        "notes": list(comparison.notes),
    }
    return result_of(ResultKind.COMPARE, record)


def sweep_rows(swept: Swept) -> list[dict[str, Any]]:
    """Return one flat row a combination: its values, then its forecast."""
    pairs = zip(swept.cases, swept.rows, strict=True)
    return _even([{**plain_values(case.values), **flat_row(row)} for case, row in pairs])


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Return one flat row a scenario: its forecast, and differences and ratios to the first."""
    rows = []
    pairs = zip(comparison.cases, comparison.rows, strict=True)
    for place, (case, row) in enumerate(pairs):
        against = comparison.against_first(place)
        ends = {
            f"{name}_{end}": getattr(against[name], end)
            for name in COMPARED
            for end in ("difference", "ratio")
        }
        named = {"scenario": case.scenario.where, "title": case.scenario.title}
        rows.append({**named, **flat_row(row), **ends})
    return _even(rows)


def flat_row(row: Row) -> dict[str, Any]:
    """Return a row with a column for each key of its layout, and lists in one word."""
    table = row.model_dump(mode="json")
    layout = table.pop(_LAYOUT)
    warnings = table.pop("warnings")
    found = {**table, **layout, "warnings": "; ".join(warnings)}
    return {name: _cell(value) for name, value in found.items()}


def plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a combination as JSON has them."""
    return {key: json.loads(json.dumps(value, default=str)) for key, value in values.items()}


def _cell(value: Any) -> Any:
    return "+".join(map(str, value)) if isinstance(value, list) else value


def _even(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows that all have the same columns."""
    columns = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in columns} for row in rows]
