"""`traincast launch export`: the files that start a layout with a framework."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from traincast.commands.launch_tool import TOOL_NAMES, tool_named
from traincast.commands.output import check_files, write
from traincast.commands.targets import check_folders

if TYPE_CHECKING:
    from planner.launch.records import Launch
    from simulator.parallel.layout import ParallelLayout
    from simulator.scenario import Scenario


def export_launch(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="Scenario file (.toml).")],
    *,
    tool: Annotated[str, typer.Option(metavar="NAME", help=f"Framework: {TOOL_NAMES}.")],
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for the files; made if it is missing.")
    ] = "launch",
    plan: Annotated[
        str | None,
        typer.Option(metavar="PLAN.json", help="Take the layout from a plan (`plan --json`)."),
    ] = None,
    rank: Annotated[int, typer.Option(min=1, help="Of --plan: which of its layouts.")] = 1,
    slurm: Annotated[
        str | None, typer.Option(metavar="SITE.toml", help="Write a job script for Slurm, too.")
    ] = None,
) -> None:
    """Write the files that train the layout of a scenario, or of a plan, with a framework.

    What only you know (data, tokenizer, learning rate) is FILL_IN. What the framework cannot
    express is refused with the nearest that it can.
    """
    from planner.launch.exporting import export
    from simulator.scenario import load_scenario
    from simulator.site_file import read_site

    wanted = tool_named(tool)
    check_folders({"--out": out})
    loaded = load_scenario(scenario)
    layout = _own_layout(loaded) if plan is None else _planned(plan, rank)
    site = None if slurm is None else read_site(slurm)
    inputs = [each for each in (scenario, plan, slurm) if each is not None]
    _write(export(loaded, layout, wanted, site=site), out, inputs)


def _own_layout(scenario: Scenario) -> ParallelLayout:
    from simulator.errors import InputError, Problem
    from simulator.given_layout import scenario_layout

    if scenario.file.layout is None:
        rule = "has no [layout] to launch"
        fix = "add one, or take one of a plan: --plan PLAN.json (`traincast plan --json PLAN.json`)"
        raise InputError(Problem(where=scenario.where, key="layout", rule=rule, fix=fix))
    return scenario_layout(scenario)


def _planned(path: str, rank: int) -> ParallelLayout:
    """Return a layout of a plan that was written as JSON."""
    from simulator.errors import InputError, Problem
    from simulator.files import parse_record, read_json
    from simulator.parallel.layout import ParallelLayout

    record = read_json(path)
    layouts = record.get("layouts") if isinstance(record, dict) else None
    if not isinstance(layouts, list):
        rule = "is not a plan: it has no list of layouts"
        raise InputError(Problem(where=path, rule=rule, fix="`traincast plan SCENARIO --json OUT`"))
    found: list[Any] = [
        entry["layout"]
        for entry in layouts
        if isinstance(entry, dict) and entry.get("rank") == rank and "layout" in entry
    ]
    if not found:
        rule, fix = f"has {len(layouts)} layouts", f"1 to {len(layouts)}" if layouts else ""
        raise InputError(Problem(where=path, key="--rank", found=str(rank), rule=rule, fix=fix))
    fields = {name: v for name, v in found[0].items() if name in ParallelLayout.model_fields}
    return parse_record(ParallelLayout, fields, path)


def _write(launch: Launch, out: str, inputs: list[str]) -> None:
    from simulator.errors import InputError, Problem

    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = f"cannot be made: {(error.strerror or '').lower()}"
        problem = Problem(where=out, key="--out", rule=rule, fix="another folder")
        raise InputError(problem) from error
    check_files([folder / file.name for file in launch.files], inputs)
    for file in launch.files:
        write(file.text, str(folder / file.name))
        typer.echo(f"wrote {folder / file.name}", err=True)
    if launch.fill:
        typer.echo(f"fill in: {', '.join(launch.fill)}", err=True)
    for note in launch.notes:
        typer.echo(f"note: {note}", err=True)
