"""The answer of a run plan, from what was known, drawn and simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from planner.energy import PowerModel, assumed
from planner.goodput.best import (
    Interval,
    cheapest,
    compare_spares,
    search_worlds,
)
from planner.goodput.bill import Fleet, energy_plan, hours_of, hours_of_run, price_of, times
from planner.goodput.checkpoint import checkpoint_notes, keep_notes
from planner.goodput.data import DataPlan, data_notes, data_plan
from planner.goodput.elastic import elastic_notes
from planner.goodput.interval import first_order_goodput
from planner.goodput.known import KnownRun
from planner.goodput.replicate import World, over, quantiles
from planner.goodput.result import CheckpointPlan, FailurePlan, IdealRun, RunPlan, Samples
from planner.goodput.shape import Cause, Played
from simulator.parallel.layout import ParallelLayout
from simulator.results import Breakdown
from simulator.run_file import RunFile
from simulator.scenario import Scenario
from simulator.units import SECONDS_PER_DAY, SECONDS_PER_HOUR


class ForecastStep(Protocol):
    """What a run plan needs of a step: a `StepResult` or a `PlannedLayout` has it."""

    @property
    def step_time(self) -> float:
        """Seconds."""
        ...

    @property
    def high(self) -> float:
        """Upper end of the 80 % interval, seconds."""
        ...

    @property
    def breakdown(self) -> Breakdown:
        """Seconds of the busiest stage."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """All that the answer is made of."""

    scenario: Scenario
    layout: ParallelLayout
    step: ForecastStep
    known: KnownRun
    worlds: Sequence[World]
    played: Sequence[Played]
    intervals: Sequence[Interval]
    model: PowerModel

    @property
    def run(self) -> RunFile:
        """The run table."""
        return self.scenario.file.run or RunFile()

    @property
    def fleet(self) -> Fleet:
        """What is paid for."""
        shape = self.known.shape
        return Fleet(
            nodes=shape.levels[0].nodes,
            spares=shape.spares,
            accelerators=self.scenario.world_size,
        )


def answer(told: Told) -> RunPlan:
    """Return the run plan."""
    scenario, known, run, played = told.scenario, told.known, told.run, told.played
    price, hours = price_of(scenario), hours_of(played, told.fleet)
    rate = price.per_accelerator_hour
    data, checkpoint = _data(told), _checkpoint(told)
    return RunPlan(
        steps=known.steps,
        tokens=known.steps * scenario.file.job.tokens_per_step,
        step_time=told.step.step_time,
        world_size=scenario.world_size,
        ideal=_ideal(told, rate),
        days=over(played, lambda one: one.wall / SECONDS_PER_DAY),
        goodput=over(played, lambda one: one.goodput),
        accelerator_hours=hours,
        cost=None if rate is None else times(hours, rate),
        currency=price.currency,
        shares=_shares(played),
        checkpoint=checkpoint,
        failures=_failures(told),
        energy=energy_plan(scenario, told.step.breakdown, played, told.fleet, told.model),
        data=data,
        replications=len(played),
        samples=_samples(told, rate),
        seed=run.seed,
        warnings=tuple(_warnings(told, data, checkpoint)),
        assumptions=tuple(_assumptions(told)),
    )


def _samples(told: Told, rate: float | None) -> Samples:
    """Return every run; `rate` is the price of an accelerator-hour."""
    hours = tuple(hours_of_run(one, told.fleet) for one in told.played)
    return Samples(
        days=tuple(one.wall / SECONDS_PER_DAY for one in told.played),
        goodput=tuple(one.goodput for one in told.played),
        failures=tuple(one.failures for one in told.played),
        accelerator_hours=hours,
        cost=None if rate is None else tuple(each * rate for each in hours),
    )


def _ideal(told: Told, rate: float | None) -> IdealRun:
    hours = told.known.shape.work / SECONDS_PER_HOUR * told.scenario.world_size
    return IdealRun(
        days=told.known.shape.work / SECONDS_PER_DAY,
        accelerator_hours=hours,
        cost=None if rate is None else hours * rate,
    )


def _shares(played: Sequence[Played]) -> dict[Cause, float]:
    wall = fmean(run.wall for run in played)
    return {cause: fmean(run.seconds[cause] for run in played) / wall for cause in Cause}


def _checkpoint(told: Told) -> CheckpointPlan | None:
    known, file = told.known, told.run.checkpoint
    if known.times is None:
        return None
    steps = round(known.shape.interval / told.step.step_time)
    # Those before planned stops, in the mean run, stand between the regular ones.
    saves = round(fmean(run.saves for run in told.played))
    written = -(-known.steps // steps) + saves
    kept = written if file.keep is None else min(file.keep, written)
    searched = "search" if told.intervals else "end of the run"
    return CheckpointPlan(
        mode=file.mode,
        size=known.size,
        times=known.times,
        stall=known.shape.stall,
        interval_steps=steps,
        interval=known.shape.interval,
        chosen="scenario" if known.given_interval else searched,
        count=kept,
        stored_bytes=kept * known.size.total,
    )


def _failures(told: Told) -> FailurePlan | None:
    known, shape, recovery = told.known, told.known.shape, told.known.recovery
    if recovery is None or not told.intervals:
        return None
    mean_rate = fmean(world.hazard.per_second for world in told.worlds)
    spares = compare_spares(shape, search_worlds(shape, told.worlds), told.run.seed)
    back = shape.detection + shape.restart
    return FailurePlan(
        rates=tuple(file.name for file in known.rates),
        mtbf=quantiles([world.hazard.mtbf for world in told.worlds]),
        count=over(told.played, lambda one: one.failures),
        detection=recovery.detection,
        restart=recovery.restart,
        repair=recovery.repair,
        spares=shape.spares,
        levels=shape.levels,
        first_order_goodput=first_order_goodput(
            shape.interval, shape.stall, 1.0 / mean_rate, back + shape.write
        ),
        intervals=tuple(told.intervals),
        spare_choices=spares,
        best_spares=cheapest(spares).nodes,
    )


def _data(told: Told) -> DataPlan:
    return data_plan(told.scenario, told.run.data, told.known.steps, told.step.step_time)


def _warnings(told: Told, data: DataPlan, checkpoint: CheckpointPlan | None) -> Iterator[str]:
    scenario, known, run = told.scenario, told.known, told.run
    if checkpoint is not None:
        yield from checkpoint_notes(known.size, run.checkpoint, scenario.profile, told.layout)
        if run.checkpoint.keep is None:
            yield from keep_notes(checkpoint.count, known.size.total)
    yield from elastic_notes(scenario, told.layout, len(known.shape.levels))
    yield from data_notes(run.data, data)
    if known.shape.spares > known.shape.levels[0].nodes:
        yield f"run.failures.spares: {known.shape.spares} spares of fewer nodes"


def _assumptions(told: Told) -> Iterator[str]:
    known = told.known
    if known.times is None:
        yield "no checkpoint is counted, as nothing says how fast storage is"
    if known.recovery is None:
        yield "nothing fails, as [run.failures] names no rates"
    else:
        names = ", ".join(file.name for file in known.rates)
        yield (
            f"failures as counted in {names}, at random and independent of each other; a lost node "
            "is found at once in the pool of spares, and spares do not fail"
        )
        yield (
            f"detection {known.recovery.detection:g} s, restart {known.recovery.restart:g} s and "
            f"reading the checkpoint, repair {known.recovery.repair:g} s on average (exponential)"
        )
    if told.scenario.mixed:
        first = told.scenario.profile.name
        yield f"storage, copies and what fails as on {first}, on all parts of the cluster"
    yield "the pace of a run is drawn once, log-normal, with the 80 % interval of its step"
    yield from assumed(told.model)
