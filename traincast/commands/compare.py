"""`traincast compare`: several scenarios side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from simulator.errors import InfeasibleError, InputError, Problem
from traincast.commands.output import as_json, check_targets, console, progress_bar, write_all

_LEAST = 2


def compare(
    scenarios: Annotated[
        list[str], typer.Argument(metavar="SCENARIO...", help="Scenario files, two or more.")
    ],
    layout: Annotated[
        bool, typer.Option("--layout", help="Simulate each [layout] instead of the best plan.")
    ] = False,
    *,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Processes [default: all cores, if it takes some seconds]."),
    ] = None,
    csv: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write a row a scenario ('-': stdout).")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write all as JSON ('-': stdout).")
    ] = None,
    parquet: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write a row a scenario as Parquet.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Compare scenarios: the best plan of each, with differences and ratios to the first."""
    if len(scenarios) < _LEAST:
        rule, fix = "needs two scenarios or more", "traincast plan, for one"
        raise InputError(Problem(key="SCENARIO...", found=scenarios[0], rule=rule, fix=fix))
    free = [check_targets(each, csv=csv, json=json, parquet=parquet) for each in scenarios]

    from planner.sweep.run import Workers
    from reports.comparison_view import print_comparison
    from reports.sweep_record import comparison_record
    from traincast.sweeps import check_parquet, comparison_frame, parquet_bytes, run_comparison

    if parquet is not None:
        check_parquet()
    with progress_bar("scenarios", quiet=quiet) as report:
        found = run_comparison(tuple(scenarios), Workers(jobs=jobs), layout=layout, progress=report)
    record = comparison_record(found)
    write_all(
        (json, lambda: as_json(record)),
        (csv, lambda: comparison_frame(found).to_csv(index=False)),
        (parquet, lambda: parquet_bytes(comparison_frame(found))),
    )
    if all(free):
        print_comparison(console(), record)
    if not any(row.runs for row in found.rows):
        rule = "none of the scenarios can run; the table says why"
        raise InfeasibleError(Problem(where=", ".join(scenarios), rule=rule))
