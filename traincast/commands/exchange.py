"""What `simulate` writes for other simulators: Chakra traces, a GOAL schedule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from simulator.errors import InputError, Problem
from traincast.commands.output import STDOUT, same_place, write
from traincast.commands.targets import check_new_folders

if TYPE_CHECKING:
    from simulator.interchange.export import StepTrace
    from simulator.scenario import Scenario


def check_folder(folder: str | None, **files: str | None) -> None:
    """Raise `InputError` where traces cannot go to a folder.

    It is there already, or is the target of another output.
    """
    from simulator.interchange.folder import check_free

    if folder is None:
        return
    if folder == STDOUT:
        rule = "traces of all ranks are a folder, which cannot go to standard output"
        raise InputError(Problem(key="--chakra", found=folder, rule=rule, fix="name a folder"))
    check_new_folders({"--chakra": folder})
    check_free(Path(folder))
    for name, target in files.items():
        if target not in (None, STDOUT) and same_place(folder, str(target)):
            rule, fix = f"is the target of --{name}, too", "another folder"
            raise InputError(Problem(key="--chakra", found=folder, rule=rule, fix=fix))


def write_ranks(
    scenario: Scenario,
    step_seconds: float,
    *,
    chakra: str | None,
    goal: str | None,
    ranks_limit: int | None,
) -> None:
    """Write the step of all ranks where it is asked for; notes go to standard error."""
    from traincast.forecasts import trace_ranks

    traces = trace_ranks(scenario, ranks_limit=ranks_limit)
    cluster = scenario.file.cluster
    notes: tuple[str, ...] = ()
    if cluster.slow or cluster.jitter is not None:
        notes = ("slow accelerators and jitter are left out of what is written",)
    if goal is not None:
        text, substitutes = _goal(scenario, traces)
        notes += substitutes
        write(text, goal)
    if chakra is not None:
        from simulator.interchange.chakra_files import write_chakra

        notes += write_chakra(chakra, traces, scenario.profile, step_seconds=step_seconds)
    for note in notes:
        typer.echo(f"note: {note}", err=True)


def _goal(scenario: Scenario, traces: StepTrace) -> tuple[str, tuple[str, ...]]:
    from simulator.cost.collectives.select import CollectiveCosts
    from simulator.interchange.goal import GoalWriter

    profile = scenario.profile
    costs = CollectiveCosts(profile, apart=True)
    writer = GoalWriter(traces.workload(), costs, profile.node.scale_up.domain_size)
    text = writer.text()
    return text, writer.notes
