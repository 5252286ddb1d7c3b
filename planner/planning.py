"""From a scenario to its fastest layouts: the order in which the parts of the planner work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from planner.axes import expert_sizes, tensor_sizes
from planner.explain import (
    bottleneck,
    extra_seconds,
    run_totals,
    stage_memory_report,
    why_it_lost,
)
from planner.feasible import Feasible, LayoutKey, divide_by_memory
from planner.hints import memory_hints
from planner.result import NearMiss, Plan, PlannedLayout, Searched
from planner.search import Progress, Ranked, fastest
from planner.space import Space, enumerate_layouts
from simulator.api import Forecaster
from simulator.conditions import estimate_notes
from simulator.parallel.checks import Reason
from simulator.parallel.layout import ParallelLayout
from simulator.results import StepResult
from simulator.scenario import Scenario

NEAREST = 5
"""Layouts shown where nothing fits."""


def plan(scenario: Scenario, *, progress: Progress | None = None) -> Plan:
    """Return the fastest layouts of a scenario, how they were found and why others were not taken.

    Legal layouts within the memory limit are searched by estimated step time. The event engine
    plays the best few of those found, and more until no other of them can be the fastest, as
    contention makes no step faster. All are ranked by what is known of their step time, ties by the
    layout. `progress` is told how many layouts are settled, of how many. The same scenario gives
    the same plan.

    Raises:
        InputError: the search table contradicts itself.
        UnsupportedError: the machine has no constants for the job's precision.
    """
    space = enumerate_layouts(scenario)
    forecaster = Forecaster.of(scenario)
    search = scenario.file.search
    limit = search.memory_fraction * scenario.profile.accelerator.memory
    feasible = divide_by_memory(forecaster, space.layouts, limit, NEAREST)
    bar = _Bar(progress, len(space.layouts) + min(search.top, len(feasible.fitting)))
    bar.reach(feasible.too_large)
    found = fastest(
        forecaster,
        feasible.fitting,
        search.top,
        lambda done: bar.reach(feasible.too_large + done),
    )
    bar.reach(len(space.layouts))
    layouts = _ranked(forecaster, found.best, search.simulate, bar)
    return _answer(
        scenario,
        forecaster,
        _Outcome(space=space, feasible=feasible, estimated=found.estimated, layouts=layouts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What the parts of the search found."""

    space: Space
    feasible: Feasible
    estimated: int
    layouts: tuple[PlannedLayout, ...]

    @property
    def searched(self) -> Searched:
        return Searched(
            considered=self.space.considered,
            legal=len(self.space.layouts),
            fitting=len(self.feasible.fitting),
            estimated=self.estimated,
            simulated=sum(entry.simulated for entry in self.layouts),
        )

    @property
    def rejected(self) -> dict[Reason, int]:
        too_large = self.feasible.too_large
        memory = {Reason.MEMORY: too_large} if too_large else {}
        return {**self.space.rejected, **memory}


class _Bar:
    """Tells a progress callback how far the search is; never goes back."""

    def __init__(self, callback: Progress | None, total: int) -> None:
        self.callback, self.total, self.done = callback, total, 0

    def reach(self, done: int) -> None:
        self.done = max(self.done, done)
        if self.callback is not None:
            self.callback(self.done, self.total)


def _ranked(
    forecaster: Forecaster, best: Sequence[Ranked], least: int, bar: _Bar
) -> tuple[PlannedLayout, ...]:
    """Return the layouts by step time: simulated of at least `least`, of the others estimated."""
    found: list[tuple[float, LayoutKey, StepResult, Ranked, bool]] = []
    fastest_played = inf
    for number, ranked in enumerate(best):
        plays = number < least or ranked.seconds <= fastest_played
        if plays:
            result = forecaster.simulate(ranked.layout, spans=False)
            fastest_played = min(fastest_played, result.step_time)
        else:
            result = forecaster.estimate(ranked.layout)
        found.append((result.step_time, ranked.key, result, ranked, plays))
        bar.reach(bar.done + 1)
    found.sort(key=lambda entry: entry[:2])
    return tuple(
        _planned(rank, result, ranked, simulated=plays)
        for rank, (_, _, result, ranked, plays) in enumerate(found, start=1)
    )


def _planned(rank: int, result: StepResult, ranked: Ranked, *, simulated: bool) -> PlannedLayout:
    return PlannedLayout(
        rank=rank,
        layout=ranked.layout,
        simulated=simulated,
        step_time=result.step_time,
        low=result.low,
        high=result.high,
        estimate=ranked.seconds,
        tokens_per_second=result.tokens_per_second,
        mfu=result.mfu,
        peak_memory=result.peak_memory,
        breakdown=result.breakdown,
    )


def _misses(
    forecaster: Forecaster, layouts: Sequence[ParallelLayout], limit: float
) -> tuple[NearMiss, ...]:
    misses = []
    for layout in layouts:
        uses = forecaster.memory(layout)
        misses.append(
            NearMiss(
                layout=layout,
                peak_memory=max(use.reserved for use in uses),
                stages=tuple(stage_memory_report(use, limit) for use in uses),
            )
        )
    return tuple(misses)


def _answer(scenario: Scenario, forecaster: Forecaster, outcome: _Outcome) -> Plan:
    profile, layouts = scenario.profile, outcome.layouts
    limit = scenario.file.search.memory_fraction * profile.accelerator.memory
    best, other = (layouts[0] if layouts else None), (layouts[1] if layouts[1:] else None)
    job, price = scenario.file.job, profile.machine.price
    examples = outcome.space.examples
    nearest = _misses(forecaster, outcome.feasible.nearest, limit)
    return Plan(
        title=scenario.title,
        world_size=scenario.world_size,
        layouts=layouts,
        searched=outcome.searched,
        rejected=outcome.rejected,
        examples={reason: str(problem) for reason, problem in examples.items()},
        memory_limit=limit,
        memory_capacity=profile.accelerator.memory,
        nearest=nearest,
        hints=memory_hints(scenario, _largest(nearest[0])) if nearest else (),
        bottleneck=bottleneck(best.breakdown) if best else "",
        runner_up=extra_seconds(best.breakdown, other.breakdown) if best and other else None,
        runner_up_lost=why_it_lost(best, other) if best and other else "",
        run=run_totals(best, job, scenario.world_size, price) if best else None,
        warnings=(*forecaster.provenance.warnings, *_search_notes(forecaster)),
        assumptions=_assumptions(scenario),
        provenance=forecaster.provenance,
    )


def _largest(miss: NearMiss) -> str:
    """Return the largest part of the fullest stage's memory."""
    return max(miss.stages, key=lambda stage: stage.peak).largest


def _search_notes(forecaster: Forecaster) -> tuple[str, ...]:
    """Return a warning where the search ranks by estimates of a sounder cluster than it is."""
    return tuple(
        f"{note}, and the search ranks by estimates first"
        for note in estimate_notes(forecaster.conditions)
    )


def _assumptions(scenario: Scenario) -> tuple[str, ...]:
    """Return what the search took for granted, beside what the user wrote."""
    search, notes = scenario.file.search, scenario.model.notes
    sizes = ", ".join(map(str, tensor_sizes(scenario)))
    lines = [f"tp of {sizes}; cp of {', '.join(map(str, search.cp))}"]
    if scenario.model.spec.moe is not None:
        lines.append(f"ep of {', '.join(map(str, expert_sizes(scenario)))}")
    lines += [
        f"a layout may reserve {search.memory_fraction:.0%} of the accelerator's memory",
        f"layers are spread over stages by the stack's rule, {scenario.stack.partition.value}, "
        "or as a layout's layers_per_stage says",
        "gradients are all-reduced over all data ranks (or sharded over all of them)",
    ]
    if scenario.file.job.tokens is not None:
        lines.append("run totals are without failures, checkpoints and evaluation")
    return (*lines, *notes)
