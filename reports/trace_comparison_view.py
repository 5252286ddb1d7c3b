"""A measured step beside its forecast, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from reports.quantities import counted, plain, seconds, signed_percent
from reports.styles import Style
from reports.table import Column, print_heading, print_pairs, print_table, print_text

Record = Mapping[str, Any]


def print_trace_comparison(console: Console, record: Record) -> None:
    """Print both step times, the classes with their differences, and what explains most."""
    print_text(console, plain(f"{record['title']}: forecast and {record['step']}"), Style.TITLE)
    console.print()
    spread = f"{seconds(record['low_s'])} to {seconds(record['high_s'])}"
    measured = (
        f"{seconds(record['measured_step_s'])} ({counted(record['steps'], 'step')}: {spread})"
    )
    forecast = f"{seconds(record['simulated_step_s'])} (stage {record['stage']})"
    print_pairs(console, [("forecast", forecast), ("measured", measured)])
    print_heading(console, "Where the time goes, each instant counted once")
    _print_classes(console, record["classes"])
    if record["unclassified"]:
        print_heading(console, "Work whose name tells no class")
        names = [(plain(e["name"]), seconds(e["seconds"])) for e in record["unclassified"]]
        _print_names(console, names)
    print_heading(console, "What explains the difference")
    for sentence in record["sentences"]:
        print_text(console, plain(sentence))
    for note in record["notes"]:
        print_text(console, f"! {plain(note)}", Style.CARE)


def _print_classes(console: Console, classes: Sequence[Record]) -> None:
    columns = [
        Column(title="class", cells=[plain(e["name"]) for e in classes], justify="left"),
        Column(title="forecast", cells=[_time(e["simulated_s"]) for e in classes]),
        Column(title="measured", cells=[_time(e["measured_s"]) for e in classes]),
        Column(title="difference", cells=[_signed(e["difference_s"]) for e in classes]),
        Column(
            title="of the step",
            cells=[signed_percent(e["difference_share"]) for e in classes],
            rank=1,
        ),
        Column(title="least", cells=[seconds(e["low_s"]) for e in classes], rank=2),
        Column(title="most", cells=[seconds(e["high_s"]) for e in classes], rank=2),
    ]
    print_table(console, columns, "--json has all")


def _print_names(console: Console, names: Sequence[tuple[str, str]]) -> None:
    columns = [
        Column(title="seconds", cells=[value for _, value in names]),
        Column(title="name", cells=[name for name, _ in names], justify="left"),
    ]
    print_table(console, columns)


def _time(value: float | None) -> str:
    return "-" if value is None else seconds(value)


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{seconds(abs(value))}"
