"""Why a plan is as it is, from its numbers alone: bottleneck, runner-up, totals of the run."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from planner.result import PlannedLayout, RunTotals, StageMemory
from simulator.hardware.profile import Price
from simulator.results import Breakdown, Category, MemoryUse
from simulator.workload.job import TrainingJob

SECONDS_PER_HOUR = 3600.0
HOURS_PER_DAY = 24.0

_NAMES = {
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
_NOISE = 1e-9
"""Share of a step below which a difference is rounding."""
_SHOWN = 3
"""Categories named in a sentence."""
_PARTS = ("weights", "gradients", "optimizer", "activations", "transient", "logits")


def bottleneck(breakdown: Breakdown) -> str:
    """Return the largest category of a stage's step and its share, in words."""
    category, seconds = max(breakdown.seconds.items(), key=lambda item: item[1])
    share = seconds / breakdown.total
    return f"{_NAMES[category]}: {share:.0%} of the step of stage {breakdown.stage}"


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
    parts = ", ".join(f"{_NAMES[c]} {extra[c]:+.3g} s" for c in most)
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
