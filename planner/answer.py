"""The answer of a plan, from what the parts of the planner found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.axes import expert_sizes, tensor_sizes
from planner.budget import cut_notes, front_notes, proved_gap
from planner.explain import (
    beyond_words,
    bottleneck,
    extra_seconds,
    reason_words,
    run_totals,
    runner_up_words,
    stage_memory_report,
)
from planner.hints import memory_hints
from planner.objectives import price_of
from planner.remedies import remedies
from planner.result import Drawn, Front, NearMiss, Plan, PlannedLayout, Searched
from planner.selection import Pool, Selected
from planner.unmatched import unmatched_notes
from simulator.api import Forecaster
from simulator.conditions import estimate_notes
from simulator.parallel.checks import Reason
from simulator.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the parts of the planner found."""

    pools: Sequence[Pool]
    selected: Selected
    layouts: tuple[PlannedLayout, ...]
    drawn: Drawn | None
    front: Front | None

    @property
    def searched(self) -> Searched:
        """How many layouts each part of the search saw, over all jobs and clusters."""
        return Searched(
            considered=sum(p.space.considered + p.feasible.balanced for p in self.pools),
            legal=sum(p.space.legal + p.feasible.balanced for p in self.pools),
            fitting=sum(len(pool.feasible.fitting) for pool in self.pools),
            estimated=self.selected.estimated,
            simulated=sum(entry.simulated for entry in self.layouts),
            gap=self.gap,
        )

    @property
    def gap(self) -> float | None:
        """By how much any layout could be better than the best, where the search was cut short."""
        best, least_open = self.selected.best, self.selected.least_open
        if least_open is None:
            return None
        return proved_gap(best[0].value, least_open) if best else 1.0

    @property
    def rejected(self) -> dict[Reason, int]:
        """Layouts refused under each reason."""
        found: dict[Reason, int] = {}
        for pool in self.pools:
            for reason, count in pool.space.rejected.items():
                found[reason] = found.get(reason, 0) + count
        too_large = sum(pool.feasible.too_large for pool in self.pools)
        memory = {Reason.MEMORY: too_large} if too_large else {}
        return {reason: found[reason] for reason in Reason if reason in found} | memory

    @property
    def examples(self) -> dict[Reason, str]:
        """For each reason the first case."""
        found: dict[Reason, str] = {}
        for pool in self.pools:
            for reason, problem in pool.space.examples.items():
                found.setdefault(reason, str(problem))
        return found

    def pool_of(self, entry: PlannedLayout) -> Pool:
        """Return the pool that a layout is from."""
        return next(pool for pool in self.pools if pool.variant.varied == entry.varied)


def answer(scenario: Scenario, outcome: Outcome) -> Plan:
    """Return the plan of a scenario."""
    layouts = outcome.layouts
    best, other = (layouts[0] if layouts else None), (layouts[1] if layouts[1:] else None)
    pool = outcome.pool_of(best) if best else outcome.pools[0]
    own, forecaster = pool.variant.scenario, pool.variant.forecaster
    search = scenario.file.search
    memory = min(float(part.profile.accelerator.memory) for part in scenario.parts)
    misses = _misses(outcome.pools, search.memory_fraction)
    hints = memory_hints(scenario, _largest(misses[0])) if misses else ()
    price = price_of(scenario)
    beyond = outcome.selected.beyond
    return Plan(
        title=scenario.title,
        world_size=own.world_size,
        layouts=layouts,
        searched=outcome.searched,
        rejected=outcome.rejected,
        examples=outcome.examples,
        memory_limit=search.memory_fraction * memory,
        memory_capacity=memory,
        nearest=misses,
        hints=tuple(hint.text for hint in hints),
        remedies=remedies(scenario, hints) if misses else (),
        bottleneck=bottleneck(best.breakdown) if best else "",
        runner_up=extra_seconds(best.breakdown, other.breakdown) if best and other else None,
        runner_up_lost=runner_up_words(best, other, search.objective) if best and other else "",
        run=run_totals(best, own.file.job, own.world_size, price) if best else None,
        objective=search.objective,
        choice=search.choice,
        reason=reason_words(layouts, search, price.currency) if best else "",
        currency=price.currency,
        beyond=beyond_words(outcome.pools[beyond.number].measure, beyond) if beyond else "",
        front=outcome.front,
        drawn=outcome.drawn,
        warnings=(
            *forecaster.provenance.warnings,
            *cut_notes(outcome.searched),
            *front_notes(outcome.front),
            *unmatched_notes([pool.variant.scenario for pool in outcome.pools]),
            *_search_notes(forecaster),
        ),
        assumptions=_assumptions(own),
        provenance=forecaster.provenance,
    )


def _misses(pools: Sequence[Pool], fraction: float) -> tuple[NearMiss, ...]:
    """Return the layouts that come closest, of the job and cluster that comes closest."""
    if any(pool.feasible.fitting for pool in pools):
        return ()
    found = [_misses_of(pool, fraction) for pool in pools if pool.feasible.nearest]
    return min(found, key=lambda misses: misses[0].peak_memory, default=())


def _misses_of(pool: Pool, fraction: float) -> tuple[NearMiss, ...]:
    misses = []
    for layout in pool.feasible.nearest:
        cast = pool.variant.forecaster
        uses = cast.memory(layout)
        limits = [fraction * room for room in cast.memory_limits(layout)]
        misses.append(
            NearMiss(
                layout=layout,
                peak_memory=max(use.reserved for use in uses),
                stages=tuple(map(stage_memory_report, uses, limits)),
            )
        )
    return tuple(misses)


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
    if scenario.mixed:
        lines.append(_spreading(scenario))
    if scenario.file.job.tokens is not None:
        lines.append("run totals are without failures, checkpoints and evaluation")
    return (*lines, *notes)


def _spreading(scenario: Scenario) -> str:
    """Return how layers were spread over stages of different machines."""
    if not scenario.stack.custom_partition:
        return (
            f"the cluster is mixed, and {scenario.stack.name} cannot be told the layers of a "
            "stage, so that faster stages wait for slower ones"
        )
    return (
        "the cluster is mixed: layouts whose stages stand on different machines were also tried "
        "with the layers_per_stage that make the slowest stage fastest, each within its memory"
    )
