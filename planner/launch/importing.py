"""Makes a scenario of the launch files of a framework."""

from __future__ import annotations

from collections.abc import Sequence

from planner.launch.drafts import run_of, scenario_files
from planner.launch.records import Draft, Given, Imported, ImportOptions, LaunchFile, Run, Tool
from planner.launch.registry import TOOLS
from simulator.api import Forecaster
from simulator.errors import InputError, Problem
from simulator.hardware.profile import Profile, load_profile


def import_files(
    files: Sequence[LaunchFile],
    options: ImportOptions,
    *,
    tool: Tool | None = None,
    stem: str = "imported",
) -> Imported:
    """Return the scenario that launch files describe; `stem` names the files beside it.

    Raises:
        InputError: no tool's files, or everything in them that is wrong, missing or not modelled.
    """
    assert files, "the command line asks for one at least"
    chosen = tool or _recognised(files)
    if options.cluster is None:
        rule = "no launch file says what machine it runs on"
        fix = "--cluster PROFILE, one of `traincast profiles`"
        raise InputError(Problem(where=files[0].name, key="--cluster", rule=rule, fix=fix))
    profile = load_profile(options.cluster)
    given = Given(files=tuple(files), options=options, gpus_per_node=profile.node.accelerators)
    draft = TOOLS[chosen].read(given)
    run = run_of(draft, files[0].name, stem)
    _check(run, profile)
    text, beside = scenario_files(draft, run, options.cluster, stem)
    return Imported(
        tool=chosen,
        scenario=_head(files, draft) + text,
        files=beside,
        read=draft.read,
        unused=draft.unused,
        notes=(*draft.notes, *_stack_notes(draft)),
    )


def _recognised(files: Sequence[LaunchFile]) -> Tool:
    for file in files:
        for tool, entry in TOOLS.items():
            if entry.recognise(file):
                return tool
    names = ", ".join(file.name for file in files)
    rule = "is not known as the launch file of any tool"
    fix = "--tool " + "|".join(TOOLS)
    raise InputError(Problem(where=names, rule=rule, fix=fix))


def _check(run: Run, profile: Profile) -> None:
    """Raise `InputError` where the run is one that is not modelled."""
    forecaster = Forecaster(run.model, run.job, run.stack, profile, run.world_size)
    forecaster.check(run.layout, run.where)


def _head(files: Sequence[LaunchFile], draft: Draft) -> str:
    names = ", ".join(file.name for file in files)
    lines = [f"Read from {names}", *draft.notes, *_stack_notes(draft)]
    return "".join(f"# {line}\n" for line in lines)


def _stack_notes(draft: Draft) -> tuple[str, ...]:
    return tuple(
        f"unlike the stack {draft.stack}: {key} = {value}"
        for key, value in draft.stack_changes.items()
    )
