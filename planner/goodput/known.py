"""What a scenario says of its run before chance comes in: steps, checkpoints, recovery."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf
from statistics import fmean

from planner.goodput.checkpoint import (
    CheckpointSize,
    CheckpointTimes,
    checkpoint_size,
    checkpoint_times,
)
from planner.goodput.elastic import levels_of
from planner.goodput.rates import Recovery, ReliabilityFile, load_rates
from planner.goodput.shape import RunShape
from simulator.api import Forecaster
from simulator.errors import InputError, Problem
from simulator.parallel.layout import ParallelLayout
from simulator.run_file import CheckpointFile, FailureFile, MaintenanceFile, RunFile
from simulator.scenario import Scenario

MOST_STOPS = 10_000
"""Planned stops of a run."""
_CHECKPOINTS_A_STOP = 10
"""Where nothing else asks for checkpoints: a planned stop then waits a tenth of its period."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRun:
    """A run without its chance."""

    steps: int
    shape: RunShape
    """Its interval is what planned stops ask for, or the whole run, if the scenario gives none."""
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
    problems = list(_problems(scenario, run))
    rates: list[ReliabilityFile] = []
    times = None
    size = checkpoint_size(forecaster, layout)
    for number, name in enumerate(run.failures.rates if run.failures else ()):
        try:
            rates.append(load_rates(name, where=where, number=number))
        except InputError as error:
            problems += error.problems
    if run.failures is not None or _has_storage(scenario, run.checkpoint):
        try:
            times = checkpoint_times(size, run.checkpoint, scenario.profile, layout, where)
        except InputError as error:
            problems += error.problems
    given = interval_steps(run.checkpoint, step_time)
    if times is not None and given is not None:
        problems += _too_short(run.checkpoint, given, step_time, times, where)
    if run.steps is not None or scenario.file.job.tokens is not None:
        problems += _too_often(run.maintenance, steps_of(scenario, run) * step_time, where)
    if problems:
        raise InputError(*problems)
    steps = steps_of(scenario, run)
    recovery = recovery_of(run.failures, rates) if run.failures is not None else None
    own = run.checkpoint.overhead
    overhead = own if own is not None or recovery is None else recovery.checkpoint_overhead
    interval = min(given or _unforced_interval(run, steps, step_time), steps) * step_time
    return KnownRun(
        steps=steps,
        shape=RunShape(
            work=steps * step_time,
            interval=interval,
            stall=times.stall + (overhead or 0.0) if times else 0.0,
            write=times.write if times else 0.0,
            detection=recovery.detection if recovery else 0.0,
            restart=(recovery.restart if recovery else 0.0) + (times.read if times else 0.0),
            repair=recovery.repair if recovery else 0.0,
            levels=levels_of(scenario, layout, forecaster),
            spares=run.failures.spares if run.failures else 0,
            maintenance_every=run.maintenance.every if run.maintenance else inf,
            maintenance=run.maintenance.lasts if run.maintenance else 0.0,
        ),
        size=size,
        times=times,
        rates=tuple(rates),
        recovery=recovery,
        given_interval=given is not None,
    )


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

    Planned stops wait for one, so they ask for some; without them only the end of the run does.
    """
    if run.maintenance is None:
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


def _problems(scenario: Scenario, run: RunFile) -> Iterator[Problem]:
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


def _too_often(maintenance: MaintenanceFile | None, work: float, where: str) -> Iterator[Problem]:
    """Yield that planned stops are so many that they are a mistake."""
    if maintenance is not None and work / maintenance.every > MOST_STOPS:
        yield Problem(
            where=where,
            key="run.maintenance.every",
            found=f"{maintenance.every:g} s, in a run of {work:.3g} s of steps",
            rule=f"at most {MOST_STOPS:,} planned stops are simulated",
            fix=f'every = "{work / MOST_STOPS:.0f} s" at least',
        )


def _too_short(
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
