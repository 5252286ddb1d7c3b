"""`traincast sweep`: one scenario with many values of its keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.errors import InfeasibleError, Problem
from traincast.commands.output import (
    as_json,
    check_targets,
    console,
    progress_bar,
    write,
    write_bytes,
)

if TYPE_CHECKING:
    from planner.sweep.row import Row


def sweep(
    file: Annotated[str, typer.Argument(metavar="SWEEP", help="Sweep file (.toml).")],
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Keep finished rows there, and go on from them."),
    ] = None,
    *,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes [default: all cores, if it takes some seconds]."),
    ] = None,
    scheduler: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Dask scheduler, tcp://host:8786, to work on.")
    ] = "",
    csv: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the rows as CSV ('-': stdout).")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the rows as JSON ('-': stdout).")
    ] = None,
    parquet: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the rows as Parquet.")
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw a scaling curve: curve.svg or curve.png."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Forecast every combination of values of a scenario's keys: a row of a table each."""
    targets = {"csv": csv, "json": json, "parquet": parquet, "figure": figure}
    tables = check_targets(file, **targets)
    if parquet is not None:
        from traincast.sweeps import check_parquet

        check_parquet()
    form = ""
    if figure is not None:
        from reports.topology_drawing import figure_suffix

        form = figure_suffix(figure)[1:]

    from planner.sweep.run import Workers
    from reports.sweep_record import sweep_record
    from reports.sweep_view import print_sweep
    from traincast.sweeps import parquet_bytes, read_sweep, run_sweep, sweep_frame

    asked = read_sweep(file)
    check_targets(str(asked.scenario), **targets)
    workers = Workers(jobs=jobs, scheduler=scheduler)
    with progress_bar("combinations", quiet=quiet) as report:
        swept = run_sweep(asked, workers, None if out is None else Path(out), report)
    title = asked.file.title or f"{asked.scenario.stem}: {asked.file.sweep.what}"
    record = sweep_record(swept, title)
    if json is not None:
        write(as_json(record), json)
    if csv is not None:
        write(sweep_frame(swept).to_csv(index=False), csv)
    if parquet is not None:
        write_bytes(parquet_bytes(sweep_frame(swept)), parquet)
    if figure is not None:
        from reports.scaling_figure import scaling_of, scaling_picture

        scaling = scaling_of(swept, asked.axes, asked.file.sweep.shown, title)
        write_bytes(scaling_picture(scaling, form), figure)
    if tables:
        print_sweep(console(), record)
    else:
        for note in swept.notes:
            typer.echo(f"note: {note}", err=True)
    _check(file, swept.rows)


def _check(file: str, rows: Sequence[Row]) -> None:
    """Raise `InfeasibleError` where no combination can run, or workers died of some."""
    from planner.sweep.row import Outcome

    died = sum(row.outcome is Outcome.DIED for row in rows)
    if died:
        rule = f"workers were killed while they forecast {died} of the {len(rows)} combinations"
        fix = "fewer --jobs leave more memory for each; with --out only these are tried again"
        raise InfeasibleError(Problem(where=file, rule=rule, fix=fix))
    if not any(row.runs for row in rows):
        rule = f"none of the {len(rows)} combinations can run; each row says why"
        raise InfeasibleError(Problem(where=file, rule=rule))
