"""Why a plan is as it is, from its numbers alone: bottleneck, runner-up, totals of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from planner.objectives import Measure, price_of
from planner.result import PlannedLayout, RunTotals, StageMemory
from planner.selection import Candidate
from simulator.aims import LayoutChoice, Objective
from simulator.hardware.profile import Price
from simulator.results import Breakdown, Category, MemoryUse
from simulator.scenario import SearchFile
from simulator.units import GIB, JOULES_PER_MWH
from simulator.workload.job import TrainingJob

SECONDS_PER_HOUR = 3600.0
HOURS_PER_DAY = 24.0

CATEGORY_NAMES = {
    Category.GEMM: "matrix products",
    Category.ATTENTION: "attention",
    Category.MEMORY_BOUND: "memory-bound operators",
    Category.RECOMPUTE: "recomputation",
    Category.LAUNCH: "kernel launches",
    Category.TENSOR_COMM: "tensor-parallel communication",
    Category.CONTEXT_COMM: "context-parallel communication",
    Category.EXPERT_COMM: "expert all-to-all",
    Category.HOST_COMM: "transfers to and from host memory",
    Category.PIPELINE_COMM: "pipeline transfers",
    Category.BUBBLE: "pipeline bubble",
    Category.DATA_COMM: "data-parallel communication",
    Category.OPTIMIZER: "optimizer",
}
"""What people call each category."""
_OBJECTIVE = {
    Objective.STEP_TIME: "step time",
    Objective.DAYS: "days",
    Objective.COST: "cost",
    Objective.ENERGY: "energy",
    Objective.MEMORY: "memory",
    Objective.ACCELERATORS: "accelerators",
}
_NOISE = 1e-9
"""Share of a step below which a difference is rounding."""
_WHOLE_MONEY = 100
_SHOWN = 3
"""Categories named in a sentence."""
_PARTS = ("weights", "gradients", "optimizer", "activations", "transient", "logits")


def bottleneck(breakdown: Breakdown) -> str:
    """Return the largest category of a stage's step and its share, in words."""
    category, seconds = max(breakdown.seconds.items(), key=lambda item: item[1])
    share = seconds / breakdown.total
    return f"{CATEGORY_NAMES[category]}: {share:.0%} of the step of stage {breakdown.stage}"


def reason_words(layouts: Sequence[PlannedLayout], search: SearchFile, currency: str) -> str:
    """Return why the first layout is the first, in words."""
    best = layouts[0]
    least = f"least {_OBJECTIVE[search.objective]}"
    if search.choice is LayoutChoice.ROBUST and best.chance is not None:
        chance, compared = best.chance, sum(entry.chance is not None for entry in layouts)
        return (
            f"least expected regret of the best {compared} by {_OBJECTIVE[search.objective]}: "
            f"{chance.regret:.2%}; the best of them in {chance.best:.0%} of the draws"
        )
    match search.objective:
        case Objective.DAYS if best.days is not None:
            return f"{least}: {best.days:.4g}"
        case Objective.COST if best.cost is not None:
            what = "a million tokens" if best.days is None else "all tokens"
            return f"{least} of {what}: {_money(best.cost)} {currency}"
        case Objective.ENERGY:
            what = "a million tokens" if best.days is None else "all tokens"
            return f"{least} for {what}: {best.energy / JOULES_PER_MWH:.4g} MWh"
        case Objective.MEMORY:
            return f"{least}: {best.peak_memory / GIB:.4g} GiB"
        case Objective.ACCELERATORS:
            return f"{least}: {best.accelerators:,}, and of these the fastest"
        case _:
            return f"{least}: {best.step_time:.4g} s"


def _money(amount: float) -> str:
    """Return an amount of money: whole from 100 up."""
    return f"{amount:,.0f}" if amount >= _WHOLE_MONEY else f"{amount:.4g}"


def runner_up_words(best: PlannedLayout, other: PlannedLayout, objective: Objective) -> str:
    """Return in words by what `other` is worse than `best`."""
    if objective is Objective.STEP_TIME and best.varied == other.varied:
        return why_it_lost(best, other)
    name = f"{other.layout} {other.varied}".strip()
    worse = _value(other, objective) / _value(best, objective) - 1
    text = f"{name} has {worse:.2%} more {_OBJECTIVE[objective]}"
    if best.varied == other.varied and other.step_time >= best.step_time:
        text += f"; {why_it_lost(best, other)}"
    return text


def _value(entry: PlannedLayout, objective: Objective) -> float:
    """Return what compares layouts by an objective."""
    values = {
        Objective.DAYS: entry.days,
        Objective.COST: entry.cost,
        Objective.ENERGY: entry.energy,
        Objective.MEMORY: entry.peak_memory,
        Objective.ACCELERATORS: float(entry.accelerators),
    }
    return values.get(objective) or 1 / entry.tokens_per_second


def beyond_words(measure: Measure, fastest: Candidate) -> str:
    """Return how far the fastest layout is beyond the limits of the search."""
    search, seconds = measure.variant.scenario.file.search, fastest.seconds
    currency = price_of(measure.variant.scenario).currency
    days = measure.days(seconds)
    parts = []
    if search.max_days is not None and days > search.max_days:
        parts.append(f"{days:.4g} days, above search.max_days = {search.max_days:g}")
    if search.max_cost is not None and measure.cost(seconds) > search.max_cost:
        cost = _money(measure.cost(seconds))
        parts.append(f"{cost} {currency}, above search.max_cost = {_money(search.max_cost)}")
    return f"the fastest layout, {fastest.layout}, takes {' and '.join(parts)}"


def extra_seconds(best: Breakdown, other: Breakdown) -> dict[Category, float]:
    """Return the seconds that `other` spends more than `best` in each category; sums to the gap."""
    return {
        category: other.seconds.get(category, 0.0) - best.seconds.get(category, 0.0)
        for category in Category
    }


def why_it_lost(best: PlannedLayout, other: PlannedLayout) -> str:
    """Return in words why `other` is slower than `best`: the categories that differ most."""
    gap = other.step_time - best.step_time
    extra = extra_seconds(best.breakdown, other.breakdown)
    differing = (c for c in Category if abs(extra[c]) > _NOISE * best.step_time)
    most = sorted(differing, key=lambda c: -abs(extra[c]))[:_SHOWN]
    parts = ", ".join(f"{CATEGORY_NAMES[c]} {extra[c]:+.3g} s" for c in most)
    inside = other.step_time <= best.high
    doubt = "; the difference is within the forecast's interval" if inside else ""
    return f"{other.layout} takes {gap:.3g} s more a step: {parts or 'no difference'}{doubt}"


def run_totals(
    best: PlannedLayout, job: TrainingJob, world_size: int, price: Price
) -> RunTotals | None:
    """Return steps, days, accelerator-hours and cost of all the job's tokens; None without them.

    The last step is a whole one. Nothing fails and no checkpoint is written.
    """
    if job.tokens is None:
        return None
    steps = ceil(job.tokens / job.tokens_per_step)
    hours = steps * best.step_time / SECONDS_PER_HOUR
    a_day = SECONDS_PER_HOUR * HOURS_PER_DAY
    rate = price.per_accelerator_hour
    return RunTotals(
        steps=steps,
        days=hours / HOURS_PER_DAY,
        days_low=steps * best.low / a_day,
        days_high=steps * best.high / a_day,
        accelerator_hours=hours * world_size,
        cost=None if rate is None else hours * world_size * rate,
        currency=price.currency,
    )


def stage_memory_report(use: MemoryUse, limit: float) -> StageMemory:
    """Return a stage's peak, by how much it is above `limit` bytes, and its largest part."""
    parts: Mapping[str, float] = {name: getattr(use, name) for name in _PARTS}
    return StageMemory(
        stage=use.stage,
        peak=use.reserved,
        over=max(0.0, use.reserved - limit),
        largest=max(parts, key=lambda name: parts[name]),
        moment=use.moment,
    )
