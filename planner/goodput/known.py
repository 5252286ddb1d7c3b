"""What a scenario says of its run before chance comes in: steps, checkpoints, recovery."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from statistics import fmean

from planner.goodput.checkpoint import (
    CheckpointSize,
    CheckpointTimes,
    checkpoint_size,
    checkpoint_times,
)
from planner.goodput.contradictions import amount_problems, no_room, too_often, too_short
from planner.goodput.elastic import levels_of
from planner.goodput.rates import Recovery, ReliabilityFile, load_rates
from planner.goodput.shape import RunShape
from simulator.api import Forecaster
from simulator.errors import InputError, Problem
from simulator.parallel.layout import ParallelLayout
from simulator.run_file import CheckpointFile, FailureFile, RunFile
from simulator.scenario import Scenario

_CHECKPOINTS_A_STOP = 10
"""Where nothing else asks for checkpoints: a planned stop then waits a tenth of its period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRun:
    """A run without its chance."""

    steps: int
    shape: RunShape
    """Its interval is what planned stops wait for, or the whole run, if the scenario gives none."""
    size: CheckpointSize
    times: CheckpointTimes | None
    """None where nothing says how fast storage is, and nothing fails: checkpoints are left out."""
    rates: tuple[ReliabilityFile, ...]
    """Empty where nothing fails."""
    recovery: Recovery | None
    given_interval: bool


def known_run(
    scenario: Scenario, layout: ParallelLayout, step_time: float, forecaster: Forecaster
) -> KnownRun:
    """Return what is known of the run of a scenario at `step_time` seconds a step.

    Raises:
        InputError: with all that is missing or contradicts itself in its run table.
    """
    run, where = scenario.file.run or RunFile(), scenario.where
    rates, problems = _rates(run, where)
    problems = [*amount_problems(scenario, run), *problems]
    times = None
    size = checkpoint_size(forecaster, layout)
    if run.failures is not None or _has_storage(scenario, run.checkpoint):
        try:
            times = checkpoint_times(size, run.checkpoint, scenario.profile, layout, where)
        except InputError as error:
            problems += error.problems
    given = interval_steps(run.checkpoint, step_time)
    if times is not None and given is not None:
        problems += too_short(run.checkpoint, given, step_time, times, where)
    if run.steps is not None or scenario.file.job.tokens is not None:
        problems += too_often(run.maintenance, steps_of(scenario, run) * step_time, where)
    if problems:
        raise InputError(*problems)
    steps = steps_of(scenario, run)
    recovery = recovery_of(run.failures, rates) if run.failures is not None else None
    restart = (recovery.restart if recovery else 0.0) + (times.read if times else 0.0)
    if problems := list(no_room(run.maintenance, restart, where)):
        raise InputError(*problems)
    interval = min(given or _unforced_interval(run, steps, step_time), steps) * step_time
    return KnownRun(
        steps=steps,
        shape=RunShape(
            work=steps * step_time,
            interval=interval,
            stall=times.stall + _overhead(run, recovery) if times else 0.0,
            write=times.write if times else 0.0,
            detection=recovery.detection if recovery else 0.0,
            restart=restart,
            repair=recovery.repair if recovery else 0.0,
            levels=levels_of(scenario, layout, forecaster),
            spares=run.failures.spares if run.failures else 0,
            maintenance_every=run.maintenance.every if run.maintenance else inf,
            maintenance=run.maintenance.lasts if run.maintenance else 0.0,
            saves_first=run.maintenance is None or run.maintenance.checkpoint_first,
        ),
        size=size,
        times=times,
        rates=tuple(rates),
        recovery=recovery,
        given_interval=given is not None,
    )


def _rates(run: RunFile, where: str) -> tuple[list[ReliabilityFile], list[Problem]]:
    """Return the failure rates that a run table names, and what is wrong with them."""
    rates: list[ReliabilityFile] = []
    problems: list[Problem] = []
    for number, name in enumerate(run.failures.rates if run.failures else ()):
        try:
            rates.append(load_rates(name, where=where, number=number))
        except InputError as error:
            problems += error.problems
    return rates, problems


def _overhead(run: RunFile, recovery: Recovery | None) -> float:
    """Return what a checkpoint takes besides copies and writes, seconds."""
    own: float | None = run.checkpoint.overhead
    if own is not None:
        return own
    return recovery.checkpoint_overhead if recovery is not None else 0.0


def steps_of(scenario: Scenario, run: RunFile) -> int:
    """Return the steps of a run; the last one of its tokens is a whole one."""
    job = scenario.file.job
    assert run.steps is not None or job.tokens is not None, "checked before"
    return run.steps or ceil((job.tokens or 0) / job.tokens_per_step)


def interval_steps(file: CheckpointFile, step_time: float) -> int | None:
    """Return the steps between checkpoints, rounded up; None where the scenario does not say."""
    if file.interval_steps is not None:
        return file.interval_steps
    return None if file.interval is None else ceil(file.interval / step_time)


def _unforced_interval(run: RunFile, steps: int, step_time: float) -> int:
    """Return the steps between checkpoints that no failure asks for.

    Planned stops that wait for one ask for some; else only the end of the run does.
    """
    if run.maintenance is None or run.maintenance.checkpoint_first:
        return steps
    return max(1, int(run.maintenance.every / _CHECKPOINTS_A_STOP / step_time))


def recovery_of(file: FailureFile, rates: list[ReliabilityFile]) -> Recovery:
    """Return the times of a recovery: the scenario's, or the mean of those of its rates."""
    known = [each.recovery for each in rates]

    def value(own: float | None, theirs: list[float]) -> float:
        return fmean(theirs) if own is None else own

    return Recovery(
        detection=value(file.detection, [each.detection for each in known]),
        restart=value(file.restart, [each.restart for each in known]),
        repair=value(file.repair, [each.repair for each in known]),
        checkpoint_overhead=fmean(each.checkpoint_overhead for each in known),
    )


def _has_storage(scenario: Scenario, file: CheckpointFile) -> bool:
    own = scenario.profile.node.host.storage_bandwidth
    return own is not None or file.write_bandwidth is not None
