"""`traincast goodput`: the whole run of a scenario, with failures, checkpoints, money, energy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from traincast.commands.output import as_json, check_targets, console, progress_bar, write

if TYPE_CHECKING:
    from simulator.scenario import Scenario


def goodput(
    scenario: Annotated[
        str,
        typer.Argument(metavar="SCENARIO", help="Scenario file (.toml), mostly with a [run]."),
    ],
    *,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of the simulated runs [default: run.seed].")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the run plan as JSON ('-': stdout).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Plan the whole run: days, cost, energy, data, checkpoints, failures and what they cost.

    Simulates the run many times. The layout is the scenario's, or the fastest that `plan` finds.
    """
    tables = check_targets(scenario, json=json)

    from reports.goodput_view import goodput_record, print_goodput
    from simulator.scenario import load_scenario
    from traincast.forecasts import plan_run

    loaded = load_scenario(scenario)
    if seed is not None:
        loaded = _with_seed(loaded, seed)
    with progress_bar("simulating runs", quiet=quiet, counted=False):
        layout, result, run = plan_run(loaded)
    record = goodput_record(loaded, layout, result, run)
    if json is not None:
        write(as_json(record), json)
    if tables:
        print_goodput(console(), record)


def _with_seed(scenario: Scenario, seed: int) -> Scenario:
    from simulator.run_file import RunFile

    run = (scenario.file.run or RunFile()).model_copy(update={"seed": seed})
    file = scenario.file.model_copy(update={"run": run})
    return scenario.model_copy(update={"file": file})
