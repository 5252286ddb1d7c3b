"""`traincast place`: where the ranks of a layout should stand on the cluster's network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from simulator.errors import InputError, Problem
from traincast.commands.output import as_json, check_targets, console, progress_bar, write_all

if TYPE_CHECKING:
    from planner.placement_score import Goal

_BUDGET = 500
"""Orders; where ranks are few the search ends before."""


def place(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="Scenario file (.toml) with a [layout].")
    ],
    *,
    goal: Annotated[
        str,
        typer.Option(
            help="What a good order has little of: busiest-link, the seconds of the fullest links; "
            "cross-tier, the bytes between switches."
        ),
    ] = "busiest-link",
    budget: Annotated[int, typer.Option(min=1, help="Orders to look at, about.")] = _BUDGET,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE.csv",
            help="Write the order, for `rank_order` of [cluster.network] ('-': stdout).",
        ),
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the result as JSON ('-': stdout).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Search an order of ranks that asks less of the network; simulate the step before and after.

    An order that makes the step longer is never returned.
    """
    tables = check_targets(scenario, out=out, json=json)
    wanted = _goal(goal)

    from reports.place_view import place_record, print_place
    from simulator.scenario import load_scenario
    from traincast.forecasts import place_ranks

    loaded = load_scenario(scenario)
    with progress_bar("orders of ranks", quiet=quiet) as report:
        placing = place_ranks(loaded, goal=wanted, budget=budget, progress=report)
    record = place_record(loaded, placing)
    write_all((out, placing.kept.places.csv), (json, lambda: as_json(record)))
    if tables:
        print_place(console(), record, out)


def _goal(name: str) -> Goal:
    from planner.placement_score import Goal
    from simulator.files import nearest

    names = [goal.value for goal in Goal]
    if name not in names:
        rule, fix = f"must be one of {', '.join(names)}", nearest(name, names)
        raise InputError(Problem(key="--goal", found=repr(name), rule=rule, fix=fix))
    return Goal(name)
