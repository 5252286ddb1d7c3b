"""`traincast trace compare`: where a real step and its forecast differ, class by class."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.errors import InputError, Problem
from traincast.commands.output import as_json, check_targets, console, write_all
from traincast.commands.trace_file import trace_file

if TYPE_CHECKING:
    from calibrate.import_kineto_labels import Groups, Purposes
    from calibrate.import_kineto_steps import MeasuredStep
    from reports.trace_forecast import ForecastFile


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
        int | None,
        typer.Option(min=0, help="Stage of the forecast [default: that of the rank, or busiest]."),
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
        typer.Option(
            metavar="OUT",
            help="Write both for ui.perfetto.dev (.json, .json.gz), beginning together.",
        ),
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the comparison as JSON ('-': stdout).")
    ] = None,
) -> None:
    """Compare a step of a real run with its forecast: the time of each class, and what differs."""
    checked = [check_targets(each, out=out, json=json) for each in (simulated, *real)]

    from calibrate.import_kineto_labels import GROUP_KINDS, Purposes
    from reports.trace_comparison import Measured, chosen_step, comparison_record
    from reports.trace_comparison_view import print_trace_comparison
    from reports.trace_forecast_file import read_forecast
    from reports.trace_merged import merged_trace

    groups = _groups(group or (), GROUP_KINDS)
    file = read_forecast(Path(simulated))
    _check(file, stage, out)
    read = _read(real, Purposes(said=groups, axes=file.axes, only=file.only))
    chosen = chosen_step(read.steps, step)
    which, why = _stage(file, stage, chosen, read)
    forecast, notes = file.of_stage(which), [*read.notes, *_misfits(file, read)]
    measured = Measured(steps=read.steps, chosen=chosen, notes=notes, stage_from=why)
    record = comparison_record(forecast, measured)
    ranks = _of_ranks(read.steps, chosen)
    write_all(
        (json, lambda: as_json(record)),
        (out, lambda: trace_file(merged_trace(forecast, ranks), str(out))),
    )
    if all(checked):
        print_trace_comparison(console(), record)


def _check(file: ForecastFile, stage: int | None, out: str | None) -> None:
    """Raise `InputError` where the forecast has no such stage, or no timeline to write."""
    if stage is not None:
        file.of_stage(stage)
    if out is not None and not file.events:
        rule = "needs the forecast's timeline as a trace"
        fix = "traincast simulate SCENARIO --trace OUT.json"
        raise InputError(Problem(where=file.path, key="--out", rule=rule, fix=fix))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What all traces hold."""

    steps: list[MeasuredStep]
    worlds: dict[str, int | None]
    """Ranks of the run, by file."""
    notes: list[str]


def _read(paths: list[str], purposes: Purposes) -> _Read:
    """Return the steps of all traces, and what is to be known of each; all problems at once."""
    from calibrate.import_kineto_slices import read_rank
    from calibrate.import_kineto_steps import measured_steps

    steps: list[MeasuredStep] = []
    worlds: dict[str, int | None] = {}
    notes: list[str] = []
    problems: list[Problem] = []
    for path in dict.fromkeys(paths):
        try:
            trace = read_rank(Path(path), purposes)
            found, how = measured_steps(trace)
        except InputError as error:
            problems += error.problems
            continue
        steps += found
        worlds[path] = trace.world_size
        notes += [f"{path}: {note}" for note in (*trace.notes, f"steps: {how}")]
    if problems:
        raise InputError(*problems)
    return _Read(steps=steps, worlds=worlds, notes=notes)


def _stage(
    file: ForecastFile, stage: int | None, chosen: MeasuredStep, read: _Read
) -> tuple[int, str]:
    """Return the stage of the forecast to compare with, and why."""
    if stage is not None:
        return stage, "as asked for"
    found = file.stage_of(chosen.rank, read.worlds[chosen.path])
    if found is not None:
        return found, f"that of rank {chosen.rank}"
    return file.busiest, "the busiest"


def _misfits(file: ForecastFile, read: _Read) -> Iterator[str]:
    """Say which traces are of a run of another number of ranks than the forecast."""
    if file.axes is None:
        return
    for path, world in read.worlds.items():
        if world is not None and world != file.axes.world_size:
            forecast = f"{file.axes.world_size:,}"
            yield f"{path}: the run has {world:,} ranks, the forecast {forecast}: layouts differ"


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
