"""What `traincast explain` found, as plain values and on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from planner.explaining import Explanation
from planner.tables import layout_table
from planner.what_if import Outcome
from planner.worthwhile import Worthwhile
from reports.plan_view import print_plan
from reports.quantities import percent, plain, seconds, signed_percent
from reports.records import plan_record
from reports.result_kinds import ResultKind, result_of
from reports.step_view import Record
from reports.styles import Style
from reports.table import Column, print_heading, print_table, print_text
from simulator.scenario import Scenario

_VISIBLE = 1e-3
"""Share of the step that a source of error moves at least, to have a line."""


def explain_record(scenario: Scenario, found: Explanation) -> dict[str, Any]:
    """Return an explanation as plain values; all numbers are finite."""
    record = {
        "plan": plan_record(scenario, found.plan),
        "what_if": [
            {
                "name": each.name,
                "change": each.change,
                "same_layout": _outcome(each.same),
                "best_layout": _outcome(each.best),
                "warnings": list(each.warnings),
            }
            for each in found.what_ifs
        ],
        "worthwhile": None if found.worthwhile is None else _worthwhile(found.worthwhile),
        "sensitivities": [
            {"source": each.source, "low_s": each.low, "high_s": each.high, "origin": each.origin}
            for each in found.sensitivities
        ],
    }
    return result_of(ResultKind.EXPLAIN, record)


def _outcome(outcome: Outcome) -> dict[str, Any] | None:
    if outcome.layout is None:
        return {"layout": None, "reason": outcome.reason}
    return {
        "layout": layout_table(outcome.layout),
        "name": str(outcome.layout),
        "step_time_s": outcome.step_time,
        "speedup": outcome.speedup,
        "accelerators": outcome.accelerators,
        "peak_memory_bytes": outcome.peak_memory,
    }


def _worthwhile(found: Worthwhile) -> dict[str, Any]:
    best, own = found.best, found.found
    return {
        "wanted": dict(found.wanted),
        "best": {"layout": layout_table(best.layout), "step_time_s": best.step_time},
        "found": None
        if own is None
        else {
            "layout": layout_table(own.layout),
            "name": str(own.layout),
            "step_time_s": own.step_time,
        },
        "reason": found.reason,
        "extra_s": None
        if found.extra is None
        else {category.value: seconds for category, seconds in found.extra.items()},
        "thresholds": [asdict(each) for each in found.thresholds],
    }


def print_explanation(console: Console, record: Record) -> None:
    """Print the plan, then what each change would do, then what would make another kind win."""
    print_plan(console, record["plan"])
    if record["what_if"]:
        print_heading(console, "What if")
        _print_changes(console, record)
    if record["sensitivities"]:
        print_heading(console, "What the step is uncertain by")
        step = record["plan"]["layouts"][0]["step_time_s"]
        _print_sensitivities(console, record["sensitivities"], step)
    if record["worthwhile"] is not None:
        _print_worthwhile(console, record["worthwhile"])


def _print_changes(console: Console, record: Record) -> None:
    changes: Sequence[Record] = record["what_if"]
    print_table(
        console,
        [
            Column(title="change", cells=[plain(each["name"]) for each in changes], justify="left"),
            Column(title="same layout", cells=[_gain(each["same_layout"]) for each in changes]),
            Column(title="best layout", cells=[_gain(each["best_layout"]) for each in changes]),
            Column(
                title="which is then",
                cells=[_which(each) for each in changes],
                justify="left",
            ),
        ],
    )
    print_text(console, "tokens/s over those of the best layout now", Style.MUTED)
    for each in changes:
        reason = each["same_layout"].get("reason", "")
        if reason:
            print_text(
                console, f"{plain(each['name'])}: not the same layout: {plain(reason)}", Style.MUTED
            )
        for warning in each["warnings"]:
            print_text(console, f"{plain(each['name'])}: {plain(warning)}", Style.MUTED)


def _gain(outcome: Record) -> str:
    return f"x{outcome['speedup']:.3f}" if outcome["layout"] is not None else "-"


def _which(each: Record) -> str:
    best, same = each["best_layout"], each["same_layout"]
    if best["layout"] is None:
        return plain(best["reason"])
    alike = same["layout"] is not None and same["layout"] == best["layout"]
    return "the same" if alike else plain(best["name"])


def _print_sensitivities(console: Console, found: Sequence[Record], step: float) -> None:
    rows = [row for row in found if row["high_s"] - row["low_s"] >= _VISIBLE * step]
    print_table(
        console,
        [
            Column(title="source", cells=[plain(row["source"]) for row in rows], justify="left"),
            Column(title="step at best", cells=[_end(row["low_s"], step) for row in rows]),
            Column(title="at worst", cells=[_end(row["high_s"], step) for row in rows]),
        ],
    )
    text = "ends of the 80 % interval of each source, all else as forecast"
    less = len(found) - len(rows)
    print_text(
        console,
        f"{text}; {less} more move it by less than {percent(_VISIBLE)}" if less else text,
        Style.MUTED,
    )


def _end(value: float, step: float) -> str:
    return f"{seconds(value)} ({signed_percent(value / step - 1)})"


def _print_worthwhile(console: Console, record: Record) -> None:
    kind = ", ".join(f"{key} = {value}" for key, value in record["wanted"].items())
    print_heading(console, f"What would make {kind} worthwhile")
    print_text(console, plain(record["reason"]))
    rows: Sequence[Record] = record["thresholds"]
    print_table(
        console,
        [
            Column(title="lever", cells=[plain(row["name"]) for row in rows], justify="left"),
            Column(title="wins at", cells=[_threshold(row) for row in rows], justify="left"),
            Column(title="tried", cells=[f"to x{row['tried']:.4g}" for row in rows]),
        ],
    )


def _threshold(row: Record) -> str:
    if row["factor"] is not None:
        return f"x{row['factor']:.3g} (not yet at x{row['loses_at']:.3g})"
    return f"not by this alone{': ' + plain(row['reason']) if row['reason'] else ''}"
