"""A replayed trace as a record for machines, and that record as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console

from reports.quantities import counted, number, percent, seconds, signed_percent
from reports.styles import Style
from reports.table import Column, print_heading, print_pairs, print_table, print_text
from simulator.interchange.result import Replay
from simulator.units import GB

_RANKS_SHOWN = 12

Record = Mapping[str, Any]


def replay_record(replay: Replay, profile: str, forecast: float | None) -> dict[str, Any]:
    """Return everything of a replay; `forecast` is the step time that the traces' writer forecast.

    Times are seconds, sizes bytes.
    """
    return {
        "profile": profile,
        "step_time_s": replay.step_time,
        "recorded_s": replay.recorded,
        "forecast_s": forecast,
        "ranks": [{**asdict(rank), "idle": rank.idle} for rank in replay.ranks],
        "kinds": [asdict(kind) for kind in replay.kinds],
        "warnings": list(replay.warnings),
    }


def print_replay(console: Console, record: Record) -> None:
    """Print how long the step takes, beside the trace's own times, and what ranks do in it."""
    step, ranks = record["step_time_s"], record["ranks"]
    print_text(console, f"{counted(len(ranks), 'rank')} on {record['profile']}", Style.TITLE)
    console.print()
    pairs = [("step time", seconds(step))]
    for name, key in (("with the trace's times", "recorded_s"), ("forecast in it", "forecast_s")):
        other = record[key]
        if other:
            error = signed_percent(step / other - 1)
            pairs.append((name, f"{seconds(other)} (the replay is {error} off)"))
    print_pairs(console, pairs)
    _print_kinds(console, record["kinds"])
    _print_ranks(console, ranks, step)
    for warning in record["warnings"]:
        print_text(console, f"! {warning}", Style.CARE)


def _print_kinds(console: Console, kinds: list[Record]) -> None:
    print_heading(console, "What the trace does, all ranks together")
    columns = [
        Column(title="kind", cells=[kind["kind"] for kind in kinds], justify="left"),
        Column(title="nodes", cells=[f"{kind['count']:,}" for kind in kinds]),
        Column(title="GB", cells=[number(kind["size"] / GB) for kind in kinds], rank=1),
        Column(title="in the trace", cells=[seconds(kind["recorded"]) for kind in kinds]),
        Column(title="on this machine", cells=[seconds(kind["priced"]) for kind in kinds]),
    ]
    print_table(console, columns, "--json has all")


def _print_ranks(console: Console, ranks: list[Record], step: float) -> None:
    print_heading(console, "Ranks, those that compute longest first")
    shown = sorted(ranks, key=lambda rank: (-rank["compute"], rank["rank"]))[:_RANKS_SHOWN]
    columns = [Column(title="rank", cells=[str(rank["rank"]) for rank in shown])]
    titles = {"compute": "compute", "exposed": "exposed communication", "idle": "waiting"}
    for key, title in titles.items():
        columns.append(
            Column(title=title, cells=[percent(rank[key] / (step or 1.0)) for rank in shown])
        )
    columns.append(Column(title="end", cells=[seconds(rank["end"]) for rank in shown], rank=1))
    print_table(console, columns)
    if len(ranks) > len(shown):
        print_text(console, f"and {counted(len(ranks) - len(shown), 'rank')} more (--json has all)")
