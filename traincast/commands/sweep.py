"""`traincast sweep`: one scenario with many values of its keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simulator.errors import InfeasibleError, Problem
from traincast.commands.output import (
    as_json,
    check_targets,
    console,
    progress_bar,
    write_all,
)
from traincast.commands.targets import check_folders

if TYPE_CHECKING:
    from planner.sweep.row import Row
    from planner.sweep.sweep_file import Quantity


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
    if out is not None:
        check_folders({"--out": out})
    if parquet is not None:
        from traincast.sweeps import check_parquet

        check_parquet()
    if figure is not None:
        from reports.drawing.files import figure_suffix

        figure_suffix(figure)

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
    write_all(
        (json, lambda: as_json(record)),
        (csv, lambda: sweep_frame(swept).to_csv(index=False)),
        (parquet, lambda: parquet_bytes(sweep_frame(swept))),
        (figure, lambda: _drawn(record, asked.file.sweep.shown, str(figure))),
    )
    if tables:
        print_sweep(console(), record)
    else:
        for note in swept.notes:
            typer.echo(f"note: {note}", err=True)
    _check(file, swept.rows)


def _drawn(record: dict[str, Any], shown: Quantity, figure: str) -> str | bytes:
    """Return the picture of one quantity of a sweep, as a file of that name holds it."""
    from dataclasses import replace

    from reports.drawing.files import figure_file
    from reports.report_figures.sweep import sweep_chart
    from reports.result_files.sweep import SweepFile
    from reports.words import english

    found = SweepFile.model_validate_json(as_json(record))
    chart = sweep_chart(found, shown, english)
    return figure_file(replace(chart, title=f"{found.title}: {chart.title}"), figure)


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
