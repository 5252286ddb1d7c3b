"""A measured step beside its forecast, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console

from reports.quantities import counted, plain, seconds, signed_percent
from reports.styles import Style
from reports.table import Column, print_heading, print_pairs, print_table, print_text
from reports.trace_sentences import class_words

Record = Mapping[str, Any]
_NONE = "-"


def print_trace_comparison(console: Console, record: Record) -> None:
    """Print both step times, the classes with their differences, and what explains most."""
    print_text(console, plain(f"{record['title']}: forecast and {record['step']}"), Style.TITLE)
    console.print()
    print_pairs(console, list(_steps(record)))
    print_heading(console, "Where the time goes, each instant counted once")
    _print_classes(console, record["classes"])
    _print_hidden(console, record["classes"])
    if record["collectives"]:
        print_heading(console, "Collectives of the measured step")
        _print_collectives(console, record["collectives"])
    if record["unclassified"]:
        print_heading(console, "Work whose name tells no class")
        names = [(plain(e["name"]), seconds(e["seconds"])) for e in record["unclassified"]]
        _print_names(console, names)
    print_heading(console, "What explains the difference")
    for sentence in record["sentences"]:
        print_text(console, plain(sentence))
    for note in record["notes"]:
        print_text(console, f"! {plain(note)}", Style.CARE)


def _steps(record: Record) -> Iterator[tuple[str, str]]:
    """Yield both step times, with what they vary by."""
    low, high = record["simulated_low_s"], record["simulated_high_s"]
    interval = "" if low is None else f", 80 %: {seconds(low)} to {seconds(high)}"
    stage = f"stage {record['stage']}: {record['stage_from']}"
    yield "forecast", f"{seconds(record['simulated_step_s'])}{interval} ({stage})"
    yield "measured", f"{seconds(record['measured_step_s'])} ({record['step']})"
    if record["steps"] > 1:
        spread = f"{seconds(record['p10_s'])} to {seconds(record['p90_s'])}"
        median = f"median {seconds(record['median_s'])}, p10 to p90: {spread}"
        yield counted(record["steps"], "step"), median


def _print_classes(console: Console, classes: Sequence[Record]) -> None:
    shown = [each for each in classes if each["simulated_s"] or each["measured_s"]]
    columns = [
        _words(shown),
        Column(title="forecast", cells=[_time(e["simulated_s"]) for e in shown]),
        Column(title="measured", cells=[_time(e["measured_s"]) for e in shown]),
        Column(title="difference", cells=[_signed(e["difference_s"]) for e in shown]),
        Column(
            title="of the step",
            cells=[signed_percent(e["difference_share"]) for e in shown],
            rank=1,
        ),
        Column(title="least", cells=[seconds(e["low_s"]) for e in shown], rank=2),
        Column(title="most", cells=[seconds(e["high_s"]) for e in shown], rank=2),
    ]
    print_table(console, columns, "--json has all")


def _print_hidden(console: Console, classes: Sequence[Record]) -> None:
    """Print of each kind of communication how much of it nothing hides."""
    shown = [each for each in classes if each["simulated_busy_s"]]
    if not shown:
        return
    print_heading(console, "Communication, and how much of it nothing hides")
    columns = [
        _words(shown),
        Column(title="forecast", cells=[_time(e["simulated_busy_s"]) for e in shown]),
        Column(title="exposed", cells=[_time(e["simulated_s"]) for e in shown]),
        Column(title="measured", cells=[_time(e["measured_busy_s"]) for e in shown]),
        Column(title="exposed", cells=[_time(e["measured_s"]) for e in shown]),
    ]
    print_table(console, columns, "--json has all")


def _print_collectives(console: Console, uses: Sequence[Record]) -> None:
    columns = [
        Column(title="collective", cells=[plain(e["collective"]) for e in uses], justify="left"),
        Column(title="for", cells=[plain(class_words(e["class"])) for e in uses], justify="left"),
        Column(title="calls", cells=[f"{e['calls']:,}" for e in uses]),
        Column(title="in all", cells=[seconds(e["busy_s"]) for e in uses]),
        Column(title="exposed", cells=[seconds(e["exposed_s"]) for e in uses]),
    ]
    print_table(console, columns, "--json has all")


def _print_names(console: Console, names: Sequence[tuple[str, str]]) -> None:
    columns = [
        Column(title="seconds", cells=[value for _, value in names]),
        Column(title="name", cells=[name for name, _ in names], justify="left"),
    ]
    print_table(console, columns)


def _words(classes: Sequence[Record]) -> Column:
    cells = [plain(class_words(each["name"])) for each in classes]
    return Column(title="class", cells=cells, justify="left")


def _time(value: float | None) -> str:
    return _NONE if value is None else seconds(value)


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{seconds(abs(value))}"
