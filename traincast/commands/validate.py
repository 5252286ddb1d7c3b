"""`traincast validate`: a table of measurements beside its forecasts."""

from __future__ import annotations

from typing import Annotated

import typer

from traincast.commands.output import as_json, check_targets, console, progress_bar, write


def validate(
    rows: Annotated[str, typer.Argument(metavar="ROWS.csv", help="Measured runs, one a row.")],
    profile: Annotated[
        str | None, typer.Option(help="Machine for all rows: a shipped name or a .toml file.")
    ] = None,
    stack: Annotated[
        str | None, typer.Option(help="Stack for all rows: a shipped name or a .toml file.")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write every row as JSON ('-': stdout).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Forecast each measured row and compare: errors a group, and which rows were skipped."""
    tables = check_targets(rows, json=json)

    from calibrate.validation import to_json
    from reports.result_kinds import ResultKind, result_of
    from reports.validation_view import print_validation
    from traincast import forecasts

    with progress_bar("forecasting rows", quiet=quiet, counted=False):
        found = forecasts.validate(rows, profile, stack)
    record = result_of(ResultKind.VALIDATION, to_json(found))
    if json is not None:
        write(as_json(record), json)
    if tables:
        print_validation(console(), record)
