"""`traincast trace compare`: where a real step and its forecast differ, class by class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.errors import InputError, Problem
from traincast.commands.output import as_json, check_targets, console, write

if TYPE_CHECKING:
    from calibrate.import_kineto_labels import Groups
    from calibrate.import_kineto_steps import MeasuredStep


def compare_traces(
    simulated: Annotated[
        str,
        typer.Argument(metavar="SIMULATED.json", help="What simulate --trace (or --json) wrote."),
    ],
    real: Annotated[
        list[str],
        typer.Argument(
            metavar="REAL...", help="Traces of torch.profiler, a rank a file (.json, .gz)."
        ),
    ],
    *,
    step: Annotated[
        int | None, typer.Option(min=0, help="Step of the traces [default: that of median time].")
    ] = None,
    stage: Annotated[
        int | None, typer.Option(min=0, help="Stage of the forecast [default: the busiest].")
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=KIND",
            help="What a process group is for: tensor, context, expert, pipeline or data.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="OUT", help="Write both for ui.perfetto.dev, beginning together."),
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the comparison as JSON ('-': stdout).")
    ] = None,
) -> None:
    """Compare a step of a real run with its forecast: the time of each class, and what differs."""
    checked = [check_targets(each, out=out, json=json) for each in (simulated, *real)]

    from calibrate.import_kineto_labels import GROUP_KINDS
    from reports.trace_comparison import chosen_step, comparison_record
    from reports.trace_comparison_view import print_trace_comparison
    from reports.trace_forecast import read_forecast
    from reports.trace_merged import merged_trace

    groups = _groups(group or (), GROUP_KINDS)
    forecast = read_forecast(Path(simulated), stage)
    if out is not None and not forecast.events:
        rule = "needs the forecast's timeline as a trace"
        fix = "traincast simulate SCENARIO --trace OUT.json"
        raise InputError(Problem(where=simulated, key="--out", rule=rule, fix=fix))
    steps, notes = _read(real, groups)
    chosen = chosen_step(steps, step)
    record = comparison_record(forecast, steps, chosen, notes)
    if json is not None:
        write(as_json(record), json)
    if out is not None:
        write(as_json(merged_trace(forecast, _of_ranks(steps, chosen)), compact=True), out)
    if all(checked):
        print_trace_comparison(console(), record)


def _read(paths: list[str], groups: Groups) -> tuple[list[MeasuredStep], list[str]]:
    """Return the steps of all traces, and what is to be known of each; all problems at once."""
    from calibrate.import_kineto_slices import read_rank
    from calibrate.import_kineto_steps import measured_steps

    steps: list[MeasuredStep] = []
    notes: list[str] = []
    problems: list[Problem] = []
    for path in dict.fromkeys(paths):
        try:
            trace = read_rank(Path(path), groups)
            found, how = measured_steps(trace)
        except InputError as error:
            problems += error.problems
            continue
        steps += found
        notes += [f"{path}: {note}" for note in (*trace.notes, f"steps: {how}")]
    if problems:
        raise InputError(*problems)
    return steps, notes


def _of_ranks(steps: list[MeasuredStep], chosen: MeasuredStep) -> list[MeasuredStep]:
    """Return the chosen step, and the first of the same number of each other trace."""
    found = {chosen.path: chosen}
    for each in steps:
        if each.number == chosen.number:
            found.setdefault(each.path, each)
    return list(found.values())


def _groups(said: list[str] | tuple[()], kinds: Groups) -> Groups:
    """Return what process groups are for, as `--group` says."""
    found = {}
    problems = []
    for each in said:
        name, _, kind = each.rpartition("=")
        if not name or kind not in kinds:
            rule = "must be NAME=KIND, and KIND one of " + ", ".join(kinds)
            problems.append(Problem(key="--group", found=each, rule=rule))
            continue
        found[name] = kinds[kind]
    if problems:
        raise InputError(*problems)
    return found
