"""Terminal rendering of scenarios side by side, from the record of `reports.sweep_record`."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console

from planner.sweep.row import Outcome
from reports.quantities import days_as_time, gibibytes, number, percent, plain
from reports.step_view import Record, print_notes
from reports.styles import Style
from reports.sweep_view import value_text
from reports.table import Column, print_heading, print_pairs, print_table, print_text
from simulator.units import GIB

_HINT = "all columns: --csv, --json or a wider terminal"


def print_comparison(console: Console, record: Record) -> None:
    """Print what is forecast of each scenario, against the first, and in what they differ."""
    scenarios = record["scenarios"]
    names = [f"{n}: {plain(entry['title'])}" for n, entry in enumerate(scenarios, start=1)]
    for name in names:
        print_text(console, name, Style.TITLE)
    console.print()
    print_table(console, _columns(scenarios), _HINT)
    _print_layouts(console, scenarios)
    if record["changed"]:
        print_heading(console, "In what they differ")
        print_table(console, _changed_columns(record), _HINT)
    warnings = dict.fromkeys(text for entry in scenarios for text in entry["warnings"])
    print_notes(console, list(warnings))
    print_notes(console, list(record["notes"]), "note")


def _columns(scenarios: list[Record]) -> list[Column]:
    """Return one line a quantity: of each scenario, its difference and its ratio to the first."""
    lines = [line for line in _LINES if any(entry[line[1]] is not None for entry in scenarios)]
    columns = [Column(title="", cells=[title for title, _, _ in lines], justify="left")]
    for place, entry in enumerate(scenarios, start=1):
        columns.append(
            Column(title=str(place), cells=[_shown(entry, key, text) for _, key, text in lines])
        )
        if place > 1:
            against = entry["against_first"]
            columns += [
                Column(
                    title=f"{place} - 1",
                    cells=[_difference(against.get(key), text) for _, key, text in lines],
                    rank=2,
                ),
                Column(
                    title=f"{place} / 1",
                    cells=[_ratio(against.get(key)) for _, key, _ in lines],
                    rank=1,
                ),
            ]
    return columns


def _shown(entry: Record, key: str, text: Callable[[float], str]) -> str:
    value = entry[key]
    if value is None or (entry["outcome"] != Outcome.OK and key != "accelerators"):
        return "-"
    return text(value)


def _difference(against: Record | None, text: Callable[[float], str]) -> str:
    if against is None or against["difference"] is None:
        return ""
    value = against["difference"]
    return f"{'-' if value < 0 else '+'}{text(abs(value))}"


def _ratio(against: Record | None) -> str:
    if against is None or against["ratio"] is None:
        return ""
    return f"x {number(against['ratio'], 3)}"


def _gib(value: float) -> str:
    return gibibytes(value) if value >= GIB else number(value / GIB)


_LINES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("GPUs", "accelerators", lambda value: f"{value:,.0f}"),
    ("step, s", "step_time_s", number),
    ("  from (80 %)", "low_s", number),
    ("  to", "high_s", number),
    ("tokens/s", "tokens_per_s", number),
    ("tokens/s a GPU", "tokens_per_s_per_accelerator", number),
    ("MFU", "mfu", percent),
    ("memory, GiB", "peak_memory_bytes", _gib),
    ("all tokens", "days", days_as_time),
    ("  from (80 %)", "days_low", days_as_time),
    ("  to", "days_high", days_as_time),
    ("GPU-hours", "accelerator_hours", number),
    ("cost", "cost", number),
)
"""Title, key of a row, and how it is written."""


def _print_layouts(console: Console, scenarios: list[Record]) -> None:
    """Print the layout of each scenario, or why it has none."""
    console.print()
    pairs, styles = [], {}
    for place, entry in enumerate(scenarios, start=1):
        head = f"layout of {place}"
        if entry["outcome"] == Outcome.OK:
            pairs += [(head, f"{entry['layout']} ({entry['method']})")]
            pairs += [("  bottleneck", plain(entry["bottleneck"]))]
        else:
            pairs += [(head, f"{entry['outcome']}: {plain(entry['reason'])}")]
            styles[head] = Style.BAD
    print_pairs(console, pairs, styles)


def _changed_columns(record: Record) -> list[Column]:
    changed = record["changed"]
    keys = Column(title="key", cells=[entry["key"] for entry in changed], justify="left")
    return [
        keys,
        *(
            Column(
                title=str(place + 1),
                cells=[plain(value_text(entry["values"][place])) or "-" for entry in changed],
            )
            for place in range(len(record["scenarios"]))
        ),
    ]
