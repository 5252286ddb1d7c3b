"""`traincast simulate`: one step of the layout that a scenario gives."""

from __future__ import annotations

from typing import Annotated

import typer

from simulator.errors import InfeasibleError, Problem
from traincast.commands.exchange import check_folder, write_ranks
from traincast.commands.output import as_json, check_targets, console, progress_bar, write_all
from traincast.commands.trace_file import trace_file


def simulate(
    scenario: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="Scenario file (.toml) with a [layout].")
    ],
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="OUT",
            help="Write a timeline for ui.perfetto.dev (.json, .json.gz; '-': stdout).",
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            metavar="OUT", help="Write the pipeline schedule as CSV, as PyTorch does ('-': stdout)."
        ),
    ] = None,
    *,
    chakra: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write Chakra traces of all ranks to a new folder."),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(metavar="OUT", help="Write a GOAL schedule for LogGOPSim ('-': stdout)."),
    ] = None,
    ranks_limit: Annotated[
        int | None, typer.Option(min=1, help="Most ranks that --chakra and --goal write.")
    ] = None,
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Draw the network and how full it is: network.svg or network.png."
        ),
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the result as JSON ('-': stdout).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Simulate one step: time, throughput, where the time goes, memory of each stage."""
    tables = check_targets(
        scenario, trace=trace, schedule=schedule, goal=goal, figure=figure, json=json
    )
    files = {"trace": trace, "schedule": schedule, "goal": goal, "figure": figure, "json": json}
    check_folder(chakra, **files)

    from reports.records import step_record
    from reports.step_view import print_step
    from simulator.given_layout import scenario_layout
    from simulator.scenario import load_scenario
    from traincast.forecasts import schedule_csv, simulate_step, step_file, trace_step
    from traincast.network_figure import check_network_figure, draw_network

    loaded = load_scenario(scenario)
    layout = scenario_layout(loaded)
    if figure is not None:
        check_network_figure(loaded, figure)
    with progress_bar("simulating", quiet=quiet, counted=False):
        result = simulate_step(loaded, layout)
    record = step_record(loaded, layout, result)
    write_all(
        (json, lambda: as_json(step_file(loaded, result))),
        (trace, lambda: trace_file(trace_step(loaded, result), str(trace))),
        (schedule, lambda: schedule_csv(loaded)),
    )
    if figure is not None:
        draw_network(loaded, result, figure)
    if chakra is not None or goal is not None:
        write_ranks(loaded, result.step_time, chakra=chakra, goal=goal, ranks_limit=ranks_limit)
    if tables:
        print_step(console(), record)
    if result.peak_memory > result.memory_capacity:
        raise InfeasibleError(_too_large(scenario, result.peak_memory, result.memory_capacity))
    if not result.fits:
        raise InfeasibleError(_host_too_small(scenario, result.host_memory, result.host_capacity))


def _host_too_small(scenario: str, used: float, capacity: float) -> Problem:
    from reports.quantities import gibibytes

    return Problem(
        where=scenario,
        key="layout",
        found=f"{gibibytes(used)} GiB of host memory a rank",
        rule=f"must fit in the {gibibytes(capacity)} GiB of host memory of each accelerator",
        fix="a smaller offload_layers or optimizer_offload, or a higher zero_stage",
    )


def _too_large(scenario: str, reserved: float, capacity: float) -> Problem:
    from reports.quantities import gibibytes

    return Problem(
        where=scenario,
        key="layout",
        found=f"{gibibytes(reserved)} GiB",
        rule=f"must fit in the {gibibytes(capacity)} GiB of an accelerator",
        fix="more tp or pp, a higher zero_stage, recompute, or let `traincast plan` find a layout",
    )
