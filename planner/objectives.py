"""What a layout costs by each objective, and what of it is known before it is estimated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import ceil, inf

from planner.energy import PowerModel, board_power, load_power_model, step_energy
from planner.variants import Variant
from simulator.aims import LayoutChoice, Objective
from simulator.api import Forecaster
from simulator.errors import Problem
from simulator.hardware.parts import mean_price
from simulator.hardware.profile import Price
from simulator.parallel.layout import ParallelLayout
from simulator.results import Breakdown, Category, StepResult
from simulator.run_file import EnergyFile
from simulator.scenario import Scenario
from simulator.units import SECONDS_PER_DAY, SECONDS_PER_HOUR

TIMED = frozenset({Objective.STEP_TIME, Objective.DAYS, Objective.COST, Objective.ACCELERATORS})
"""Objectives that a longer step of one variant never improves, and nothing else changes."""
MILLION = 10**6
"""Tokens that cost and energy are shown of where the job does not say how many it trains."""
_MULTIPLIED = (Category.GEMM, Category.ATTENTION, Category.RECOMPUTE)
_ROUNDING = 1e-9
"""Relative slack for sums that are added up in another order."""


def objective_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield what the objectives and limits of a search table need and the scenario lacks."""
    search, where = scenario.file.search, scenario.where
    wanted = {"search.objective": {search.objective}, "search.pareto": {*(search.pareto or ())}}
    wanted["search.max_days"] = {Objective.DAYS} if search.max_days is not None else set()
    wanted["search.max_cost"] = {Objective.COST} if search.max_cost is not None else set()
    for key, objectives in wanted.items():
        if Objective.COST in objectives and price_of(scenario).per_accelerator_hour is None:
            rule = f"{scenario.profile.name} has no price, so nothing is known of costs"
            fix = "run.price = ... (an accelerator-hour), or [price] in a profile of your own"
            yield Problem(where=where, key=key, found=Objective.COST, rule=rule, fix=fix)
        needs_tokens = Objective.DAYS in objectives or (key == "search.max_cost" and objectives)
        if needs_tokens and scenario.file.job.tokens is None:
            rule, fix = "needs to know how much is trained", "job.tokens = ..."
            yield Problem(where=where, key=key, rule=rule, fix=fix)
    if search.choice is LayoutChoice.ROBUST and search.objective not in TIMED:
        rule = "constants are drawn for the times of layouts, and this objective is more than that"
        fix = "one of: " + ", ".join(sorted(TIMED))
        found = search.objective.value
        yield Problem(where=where, key="search.choice", found=found, rule=rule, fix=fix)
    if search.pareto is not None and search.pareto[0] is search.pareto[1]:
        found, fix = f"twice {search.pareto[0]}", "two different objectives"
        rule = "a front needs two objectives"
        yield Problem(where=where, key="search.pareto", found=found, rule=rule, fix=fix)


def price_of(scenario: Scenario) -> Price:
    """Return the price of an accelerator-hour: that of the run, or else of the profile."""
    run, price = scenario.file.run, mean_price(scenario.parts)
    if run is None or run.price is None:
        return price
    return Price(per_accelerator_hour=run.price, currency=run.currency or price.currency)


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Turns what is forecast of a layout of one variant into the values of objectives.

    Where the job has tokens, days, cost and energy are of all of them, the last step a whole one;
    else cost and energy are of one token.
    """

    variant: Variant

    @property
    def _scenario(self) -> Scenario:
        return self.variant.scenario

    @cached_property
    def steps(self) -> float:
        """Steps that values count: all of the run, or the part of a step that is one token."""
        job = self._scenario.file.job
        return (
            1 / job.tokens_per_step
            if job.tokens is None
            else ceil(job.tokens / job.tokens_per_step)
        )

    @cached_property
    def power_model(self) -> PowerModel:
        """The power model of the run."""
        run = self._scenario.file.run
        energy = run.energy if run is not None and run.energy is not None else EnergyFile()
        return load_power_model(energy.power_model, where=self._scenario.where)

    def pace(self, seconds: float) -> float:
        """Return seconds a token, which compares variants of different batch."""
        return seconds / self._scenario.file.job.tokens_per_step

    def days(self, seconds: float) -> float:
        """Return days of the run at a step time."""
        return self.steps * seconds / SECONDS_PER_DAY

    def cost(self, seconds: float) -> float:
        """Return the price of the run at a step time, in its currency."""
        rate = price_of(self._scenario).per_accelerator_hour
        assert rate is not None, "checked with the objectives"
        return self.steps * seconds / SECONDS_PER_HOUR * self._scenario.world_size * rate

    def energy(self, breakdown: Breakdown) -> float:
        """Return joules of the run at a step: accelerators and hosts, cooling apart."""
        return self.steps * sum(
            step_energy(part.profile, breakdown, part.accelerators, self.power_model)
            for part in self._scenario.parts
        )

    def value(self, objective: Objective, result: StepResult) -> float:
        """Return the value of an objective at a forecast."""
        match objective:
            case Objective.MEMORY:
                return result.peak_memory
            case Objective.ENERGY:
                return self.energy(result.breakdown)
            case _:
                return self.timed(objective, result.step_time)

    def estimate(self, objective: Objective, layout: ParallelLayout, seconds: float) -> float:
        """Return the value of an objective at the estimated step time of a layout."""
        match objective:
            case Objective.MEMORY:
                return self.variant.forecaster.peak_memory(layout)
            case Objective.ENERGY:
                return self.energy(self.variant.forecaster.estimate(layout).breakdown)
            case _:
                return self.timed(objective, seconds)

    def bound(self, objective: Objective, layout: ParallelLayout, seconds: float) -> float:
        """Return what the value is at least, where a step takes at least `seconds`."""
        match objective:
            case Objective.MEMORY:
                return self.variant.forecaster.peak_memory(layout)
            case Objective.ENERGY:
                return self.least_energy(layout, seconds)
            case _:
                return self.timed(objective, seconds)

    def timed(self, objective: Objective, seconds: float) -> float:
        """Return the value of one of the objectives in `TIMED` at a step time."""
        match objective:
            case Objective.STEP_TIME:
                return self.pace(seconds)
            case Objective.DAYS:
                return self.days(seconds)
            case Objective.COST:
                return self.cost(seconds)
            case Objective.ACCELERATORS:
                return float(self._scenario.world_size)
            case _:
                raise AssertionError(f"{objective} needs more than the step time")

    def shown(self, objective: Objective, value: float) -> float:
        """Return a value as plans show it: of a step, of the run, or of a million tokens."""
        job = self._scenario.file.job
        if objective is Objective.STEP_TIME:
            return value * job.tokens_per_step
        of_tokens = objective in (Objective.COST, Objective.ENERGY) and job.tokens is None
        return MILLION * value if of_tokens else value

    def least_energy(self, layout: ParallelLayout, seconds: float) -> float:
        """Return joules of the run at least, where a step takes at least `seconds`.

        The whole step draws what the least of activities does, and what the least busy stage
        multiplies draws as much more as matrix products do. Nothing is known of a mixed cluster.
        """
        if self._scenario.mixed:
            return 0.0
        profile, model = self._scenario.profile, self.power_model
        board, count = profile.accelerator, profile.node.accelerators
        floor = min(share for _, share in model.activity)
        low, product = (board_power(board, x, model) for x in (floor, model.activity.matrix))
        host = model.host.share * profile.node.host.power
        extra = (product - low) * least_multiplied(self.variant.forecaster, layout)
        joules = (host + count * low) * seconds + count * extra
        nodes = self._scenario.world_size / count
        return float(self.steps * nodes * joules * (1 - _ROUNDING))

    @cached_property
    def longest(self) -> float:
        """Seconds of a step at which the run still keeps to the limits of the search."""
        search = self._scenario.file.search
        limits = [inf]
        if search.max_days is not None:
            limits.append(search.max_days / self.days(1.0))
        if search.max_cost is not None:
            limits.append(search.max_cost / self.cost(1.0))
        return min(limits)


def least_multiplied(forecaster: Forecaster, layout: ParallelLayout) -> float:
    """Return seconds of matrix products and attention in a step of the least busy stage."""
    program, shape = forecaster.program(layout), layout.pipeline
    distinct = {id(chunk): chunk for chunk in program.chunks}
    work = {
        key: sum(
            cost.by_category.get(kind, 0.0)
            for cost in forecaster.costs.segment(program, chunk.whole)
            for kind in _MULTIPLIED
        )
        for key, chunk in distinct.items()
    }
    a_stage = (
        sum(work[id(program.chunks[place])] for place in shape.places_of(stage))
        for stage in range(shape.pp)
    )
    return min(a_stage) * program.micro_batches / shape.places * shape.way
