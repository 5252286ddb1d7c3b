"""A run plan as a record for machines, and that record as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console

from planner.goodput import RunPlan, run_plan_table
from reports.goodput_pairs import checkpoint_pairs, data_pairs, energy_pairs, failure_pairs
from reports.layout_words import layout_line
from reports.quantities import counted, days_as_time, number, percent, plain, seconds
from reports.records import layout_record, provenance_record
from reports.result_kinds import ResultKind, result_of
from reports.section import NONE
from reports.step_view import print_notes, provenance_line
from reports.styles import Style
from reports.table import Column, print_heading, print_pairs, print_table, print_text
from simulator.parallel.layout import ParallelLayout
from simulator.results import StepResult
from simulator.scenario import Scenario

Record = Mapping[str, Any]
CAUSE_WORDS = {
    "useful": "steps that count",
    "checkpoint": "waiting for checkpoints",
    "lost_work": "work lost and done again",
    "detection": "detecting failures",
    "restart": "starting again",
    "waiting": "waiting for nodes",
    "degraded": "fewer replicas",
    "maintenance": "planned maintenance",
}
"""Of each cause of wall time."""


def goodput_record(
    scenario: Scenario, layout: ParallelLayout, result: StepResult, run: RunPlan
) -> dict[str, Any]:
    """Return a run plan as plain values; times are seconds, sizes bytes, energy joules."""
    record = {
        "title": scenario.title,
        "scenario": scenario.where,
        "layout": layout_record(layout, scenario.file.job.global_batch_size),
        "fits": result.fits,
        "run": run_plan_table(run),
        "provenance": provenance_record(result.provenance),
    }
    return result_of(ResultKind.GOODPUT, record)


def print_goodput(console: Console, record: Record) -> None:
    """Print the totals of a run, where its time goes, checkpoints, failures, energy and data."""
    run = record["run"]
    print_text(console, plain(record["title"]), Style.TITLE)
    print_text(console, layout_line(record["layout"]))
    console.print()
    _print_totals(console, run)
    _print_shares(console, run)
    if run["checkpoint"] is not None:
        print_heading(console, "Checkpoints")
        print_pairs(console, checkpoint_pairs(run["checkpoint"]))
    if run["failures"] is not None:
        _print_failures(console, run["failures"])
    print_heading(console, "Energy and data")
    print_pairs(console, energy_pairs(run["energy"]) + data_pairs(run["data"]))
    if not record["fits"]:
        console.print()
        text = "warning: the layout does not fit in memory; simulate says where"
        print_text(console, text, Style.BAD)
    print_notes(console, [*run["warnings"], *record["provenance"]["warnings"]])
    console.print()
    for line in run["assumptions"]:
        print_text(console, f"assumed: {plain(line)}", Style.CARE)
    print_text(console, provenance_line(record["provenance"]), Style.MUTED)


def print_whole_run(console: Console, run: Record) -> None:
    """Print the totals of a run and where its time goes."""
    print_heading(console, "Whole run, with [run]")
    _print_totals(console, run)
    _print_shares(console, run)
    for line in run["warnings"]:
        print_text(console, f"warning: {plain(line)}", Style.CARE)
    print_text(console, "more of it: traincast goodput, with this [layout]", Style.MUTED)


def _print_totals(console: Console, run: Record) -> None:
    """Print days, goodput, hours and cost: without failures, and in the simulated runs."""
    ideal, currency = run["ideal"], plain(run["currency"])
    rows: list[tuple[str, float | None, Record | None, Callable[[float], str]]] = [
        ("time", ideal["days"], run["days"], days_as_time),
        ("goodput", 1.0, run["goodput"], percent),
        ("accelerator-hours", ideal["accelerator_hours"], run["accelerator_hours"], number),
        (f"cost, {currency}", ideal["cost"], run["cost"], number),
    ]
    shown = [row for row in rows if row[2] is not None]
    print_text(
        console,
        f"{run['steps']:,} steps of {seconds(run['step_time_s'])}, {run['tokens']:,} tokens; "
        f"{counted(run['replications'], 'run')} simulated, seed {run['seed']}",
    )
    console.print()

    def column(key: str) -> list[str]:
        return [text(found[key]) for _, _, found, text in shown if found is not None]

    print_table(
        console,
        [
            Column(title="", cells=[name for name, *_ in shown], justify="left"),
            Column(
                title="nothing fails",
                cells=[NONE if one is None else text(one) for _, one, _, text in shown],
            ),
            *(Column(title=key, cells=column(key)) for key in ("p10", "p50", "p90")),
        ],
    )


def _print_shares(console: Console, run: Record) -> None:
    print_heading(console, "Where the time goes")
    shares = {cause: share for cause, share in run["wall_shares"].items() if share > 0}
    print_table(
        console,
        [
            Column(title="", cells=[CAUSE_WORDS[cause] for cause in shares], justify="left"),
            Column(title="share", cells=[percent(share) for share in shares.values()]),
            Column(
                title="time",
                cells=[days_as_time(share * run["days"]["p50"], 3) for share in shares.values()],
            ),
        ],
    )


def _print_failures(console: Console, failures: Record) -> None:
    print_heading(console, "Failures")
    print_pairs(console, failure_pairs(failures))
    console.print()
    choices = failures["intervals"]
    print_table(
        console,
        [
            Column(title="checkpoint interval", cells=[c["name"] for c in choices], justify="left"),
            Column(title="steps", cells=[f"{c['steps']:,}" for c in choices]),
            Column(title="time", cells=[seconds(c["interval_s"]) for c in choices]),
            Column(title="mean goodput", cells=[percent(c["goodput"]) for c in choices]),
        ],
    )
    console.print()
    spares = failures["spare_choices"]
    best = failures["best_spares"]
    print_table(
        console,
        [
            Column(title="spare nodes", cells=[f"{c['nodes']:,}" for c in spares]),
            Column(title="mean time", cells=[days_as_time(c["days"]) for c in spares]),
            Column(title="node-days", cells=[number(c["node_days"]) for c in spares]),
            Column(
                title="",
                cells=["least paid" if c["nodes"] == best else "" for c in spares],
                justify="left",
            ),
        ],
    )
