"""`traincast explain`: why a plan is as it is, and what would change it."""

from __future__ import annotations

from typing import Annotated

import typer

from simulator.errors import InfeasibleError, Problem
from traincast.commands.output import as_json, check_targets, console, progress_bar, write


def explain(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Scenario file (.toml).")],
    layout_key: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS=VALUE",
            help='Say what would make such layouts the best, as "tp=16" or "pp=1,recompute=full".',
        ),
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write all of it as JSON ('-': stdout).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Plan, then ask what if: each change by itself, with the same layout and the best one.

    Changes are twice the NIC bandwidth, half as much memory bandwidth again, the next machine, and
    so on, and those of the scenario's [[what_if]] tables.
    """
    tables = check_targets(scenario, json=json)

    from reports.explain_view import explain_record, print_explanation
    from traincast import forecasts

    loaded = forecasts.read_scenario(scenario)
    with progress_bar("questions", quiet=quiet) as report:
        found = forecasts.explain(
            loaded, layout_key or "", progress=report, mapped=json is not None
        )
    record = explain_record(loaded, found)
    if json is not None:
        write(as_json(record), json)
    if tables:
        print_explanation(console(), record)
    if not found.plan.layouts:
        rule = "nothing fits, so there is nothing to change; what comes closest is in the plan"
        raise InfeasibleError(Problem(where=scenario, rule=rule))
