"""What a run table may not say: each rule with its numbers and the nearest fix."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from planner.goodput.checkpoint import CheckpointTimes
from simulator.errors import Problem
from simulator.run_file import CheckpointFile, MaintenanceFile, RunFile
from simulator.scenario import Scenario

MOST_STOPS = 10_000
"""Planned stops of a run."""


def amount_problems(scenario: Scenario, run: RunFile) -> Iterator[Problem]:
    """Yield that a run table says how much is trained not at all, or twice."""
    tokens = scenario.file.job.tokens
    if run.steps is None and tokens is None:
        yield Problem(
            where=scenario.where,
            key="run.steps",
            rule="a run needs to know how much is trained",
            fix="job.tokens = ..., or run.steps = ...",
        )
    if run.steps is not None and tokens is not None:
        yield Problem(
            where=scenario.where,
            key="run.steps",
            found=f"{run.steps}, and job.tokens = {tokens}",
            rule="both say how much is trained",
            fix="leave one of them out",
        )


def too_often(maintenance: MaintenanceFile | None, work: float, where: str) -> Iterator[Problem]:
    """Yield that planned stops are so many that they are a mistake."""
    if maintenance is not None and work / maintenance.every > MOST_STOPS:
        yield Problem(
            where=where,
            key="run.maintenance.every",
            found=f"{maintenance.every:g} s, in a run of {work:.3g} s of steps",
            rule=f"at most {MOST_STOPS:,} planned stops are simulated",
            fix=f'every = "{work / MOST_STOPS:.0f} s" at least',
        )


def no_room(maintenance: MaintenanceFile | None, restart: float, where: str) -> Iterator[Problem]:
    """Yield that the next planned stop is due before the job has started again after the last."""
    if maintenance is None or not maintenance.checkpoint_first:
        return
    if maintenance.every <= restart:
        yield Problem(
            where=where,
            key="run.maintenance.every",
            found=f"{maintenance.every:g} s",
            rule=f"starting again takes {restart:.3g} s, so that nothing is trained between stops",
            fix=f'every = "{2 * ceil(restart)} s" at least',
        )


def too_short(
    file: CheckpointFile, steps: int, step_time: float, times: CheckpointTimes, where: str
) -> Iterator[Problem]:
    """Yield that a checkpoint is still being written when the next one is due."""
    if times.write > steps * step_time:
        least = ceil(times.write / step_time)
        yield Problem(
            where=where,
            key="run.checkpoint.interval" + ("_steps" if file.interval_steps else ""),
            found=f"{steps} steps of {step_time:.3g} s",
            rule=f"a checkpoint is in storage only after {times.write:.3g} s, when the next one is "
            "due",
            fix=f"at least {least} steps, or a higher write_bandwidth",
        )
