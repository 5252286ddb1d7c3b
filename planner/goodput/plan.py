"""From a forecast step to a plan of the whole run: days, money, energy, failures, data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.energy import load_power_model
from planner.goodput.answer import ForecastStep, Told, answer
from planner.goodput.best import (
    Interval,
    compare_intervals,
    search_worlds,
)
from planner.goodput.known import KnownRun, known_run
from planner.goodput.replicate import World, check_count, draw_worlds, play_worlds
from planner.goodput.result import RunPlan
from simulator.api import Forecaster
from simulator.parallel.layout import ParallelLayout
from simulator.run_file import RunFile
from simulator.scenario import Scenario


def run_plan(
    scenario: Scenario,
    layout: ParallelLayout,
    step: ForecastStep,
    forecaster: Forecaster | None = None,
) -> RunPlan:
    """Return the plan of a scenario's whole run with a layout whose step was forecast.

    `[run]` of the scenario says what comes between steps; without it nothing fails and no
    checkpoint is written. The same scenario gives the same plan.

    Raises:
        InputError: the run table lacks something, contradicts itself or asks for too much.
        InfeasibleError: failures come so fast that the run makes no progress.
    """
    run, where = scenario.file.run or RunFile(), scenario.where
    model = load_power_model(run.energy.power_model, where=where)
    known = known_run(scenario, layout, step.step_time, forecaster or Forecaster.of(scenario))
    spread, nodes = step.high / step.step_time - 1.0, known.shape.levels[0].nodes
    worlds = draw_worlds(
        known.rates, scenario.profile, nodes, spread, seed=run.seed, runs=run.replications
    )
    check_count(known.shape, worlds, where)
    known, intervals = _with_interval(known, worlds, step.step_time, run.seed)
    played = play_worlds(known.shape, worlds, run.seed, where)
    told = Told(
        scenario=scenario,
        layout=layout,
        step=step,
        known=known,
        worlds=worlds,
        played=played,
        intervals=intervals,
        model=model,
    )
    return answer(told)


def _with_interval(
    known: KnownRun, worlds: Sequence[World], step_time: float, seed: int
) -> tuple[KnownRun, tuple[Interval, ...]]:
    """Return a run with the best interval where none was given, and the intervals compared."""
    if not any(world.hazard.per_second for world in worlds):
        return known, ()
    some = search_worlds(known.shape, worlds)
    intervals = compare_intervals(known.shape, some, seed, step_time)
    if known.given_interval:
        return known, intervals
    return replace(known, shape=replace(known.shape, interval=intervals[0].seconds)), intervals
