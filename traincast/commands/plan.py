"""`traincast plan`: the fastest layouts of a scenario that fit, and why the others do not win."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from simulator.errors import InfeasibleError, Problem
from traincast.commands.output import as_json, check_targets, console, progress_bar, write_all

if TYPE_CHECKING:
    from planner import Plan
    from simulator.scenario import Scenario


def plan(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Scenario file (.toml).")],
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the plan as JSON ('-': stdout).")
    ] = None,
    csv: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the layouts as CSV ('-': stdout).")
    ] = None,
    top: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Layouts to show [default: search.top].")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Find the fastest layouts that fit, and say what was searched and rejected and why."""
    tables = check_targets(scenario, json=json, csv=csv)

    from reports.plan_view import print_plan
    from reports.records import plan_record
    from simulator.scenario import load_scenario
    from traincast import forecasts

    loaded = load_scenario(scenario)
    if top is not None:
        loaded = _with_top(loaded, top)
    with progress_bar("layouts", quiet=quiet) as report:
        found = forecasts.plan(loaded, progress=report, mapped=json is not None)
    record = plan_record(loaded, found, forecasts.run_of_plan(loaded, found))
    write_all((json, lambda: as_json(record)), (csv, lambda: _table(found)))
    if tables:
        print_plan(console(), record)
    if not found.layouts:
        if found.beyond:
            fix = "a higher limit, or more or other accelerators"
            raise InfeasibleError(Problem(where=scenario, rule=found.beyond, fix=fix))
        raise InfeasibleError(
            Problem(
                where=scenario,
                rule=f"none of the {found.searched.considered} layouts considered is legal and "
                "fits in memory",
                fix="what comes closest is in the plan; more nodes, a smaller batch or a wider "
                "[search] may help",
            )
        )


def _table(plan: Plan) -> str:
    """Return the layouts as CSV."""
    from traincast.frames import plan_frame

    return plan_frame(plan).to_csv(index=False)


def _with_top(scenario: Scenario, top: int) -> Scenario:
    search = scenario.file.search.model_copy(update={"top": top})
    file = scenario.file.model_copy(update={"search": search})
    return scenario.model_copy(update={"file": file})
