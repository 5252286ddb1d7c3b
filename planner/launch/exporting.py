"""Writes the launch files of one layout, and reads them back before it hands them out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.launch.comparing import PADDED, differences
from planner.launch.drafts import run_of
from planner.launch.records import Given, ImportOptions, Launch, LaunchFile, Run, Tool
from planner.launch.registry import TOOLS
from planner.launch.script import job_script
from simulator.api import Forecaster
from simulator.errors import InputError, Problem, UnsupportedError
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario
from simulator.site_file import Site

JOB_SCRIPT = "job.sbatch"
_SHOWN = 60


def export(
    scenario: Scenario, layout: ParallelLayout, tool: Tool, *, site: Site | None = None
) -> Launch:
    """Return the files that train `layout` of `scenario` with `tool`.

    The files are read back as the tool reads them; what they do not say is refused by name.

    Raises:
        InputError: the layout is not legal, or the site file is about other nodes.
        UnsupportedError: the tool cannot express it; each key with the nearest that it can.
    """
    Forecaster.of(scenario).check(layout, scenario.where)
    run = Run(
        model=scenario.model.spec,
        job=scenario.file.job,
        layout=layout,
        stack=scenario.stack,
        nodes=scenario.world_size // scenario.profile.node.accelerators,
        gpus_per_node=scenario.profile.node.accelerators,
        where=scenario.where,
    )
    launch = TOOLS[tool].write(run)
    lost = {key: values for key, *values in differences(run, _read_back(run, launch))}
    padding = lost.pop(PADDED, None)
    if lost:
        raise UnsupportedError(*(_problem(run, tool, key, *lost[key]) for key in lost))
    files = launch.files
    if site is not None:
        files += (LaunchFile(name=JOB_SCRIPT, text=job_script(run, site)),)
    return replace(
        launch, files=files, notes=(*launch.notes, *_padding(tool, padding), *_notes(run, tool))
    )


def _read_back(run: Run, launch: Launch) -> Run:
    """Return the run that the files of a launch describe."""
    options = ImportOptions(cluster="the cluster", nodes=run.nodes)
    given = Given(files=launch.files[:1], options=options, gpus_per_node=run.gpus_per_node)
    if launch.tool is Tool.DEEPSPEED:
        given = replace(given, files=launch.files)
    try:
        return run_of(TOOLS[launch.tool].read(given), run.where)
    except InputError as error:
        raise UnsupportedError(
            *(
                replace(problem, where=run.where, rule=f"{launch.tool}: {problem.rule}")
                for problem in error.problems
            )
        ) from error


def _problem(run: Run, tool: Tool, key: str, wanted: Any, nearest: Any) -> Problem:
    said = f"{key} = {_text(nearest)}, which is what they say"
    return Problem(
        where=run.where,
        key=key,
        found=_text(wanted),
        rule=TOOLS[tool].unsaid.get(
            key, f"{TOOLS[tool].version} cannot be told so by its launch files"
        ),
        fix=said if nearest is not None else f"leave {key} out",
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value) if not isinstance(value, tuple) else str([str(part) for part in value])
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _padding(tool: Tool, sizes: list[int] | None) -> tuple[str, ...]:
    if sizes is None:
        return ()
    padded, own = sizes
    return (
        f"the forecast is of a vocabulary padded to {padded} tokens, and {tool} has {own}: "
        "job.make_vocab_size_divisible_by",
    )


def _notes(run: Run, tool: Tool) -> tuple[str, ...]:
    notes = []
    if run.stack.name not in TOOLS[tool].stacks:
        described = " or ".join(TOOLS[tool].stacks)
        notes.append(f"the scenario's stack is {run.stack.name}; that of {tool} is {described}")
    if run.job.document_length is not None:
        notes.append("job.document_length is of the data: no launch file says it")
    if run.model.moe is not None and run.job.moe.load_imbalance != 1:
        notes.append("job.moe.load_imbalance is of the data: no launch file says it")
    return tuple(notes)
