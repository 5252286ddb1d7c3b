"""The costs of a step whose stages and replicas stand on machines of several kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from simulator.cost.network.groups import WAYS
from simulator.cost.network.routed import MEETS
from simulator.cost.plan import CommPlan
from simulator.cost.priced import WorkCost
from simulator.parallel.layout import PipelineShape, Placement
from simulator.schedule.tasks import Work, WorkKind

Standing = tuple[tuple[int, float], ...]
"""Machines that the ranks of one stage of a replica run on, by their numbers, rising, each with the
time of its slowest rank's compute over that of a sound one."""

PriceOn = Callable[[int, Work], WorkCost]
"""Returns what a work costs if all its ranks run on the machine of a number."""


def mixed_costs(
    works: Sequence[Work],
    shape: PipelineShape,
    standing: Sequence[Sequence[Standing]],
    price_on: PriceOn,
) -> tuple[tuple[WorkCost, ...], ...]:
    """Return [class][work] the costs of classes of replicas; `standing` is [class][stage].

    Compute takes what it takes the slowest machine of its stage and class, since the ranks of a
    replica's stage run in lockstep; where that is one machine, its factor is left to the player. A
    collective is as slow as it would be among machines of the slowest kind that takes part: of both
    stages for what goes between them, of all replicas for what they do together.
    """
    return tuple(
        tuple(_cost(work, shape, row, standing, price_on) for work in works) for row in standing
    )


def _cost(
    work: Work,
    shape: PipelineShape,
    row: Sequence[Standing],
    everyone: Sequence[Sequence[Standing]],
    price_on: PriceOn,
) -> WorkCost:
    if work.kind in MEETS:
        stages = _holders(work, shape)
        taking = {kind for each in everyone for stage in stages for kind, _ in each[stage]}
        return _slowest_plans([price_on(kind, work) for kind in sorted(taking)])
    if work.kind is WorkKind.TIED_REDUCE:
        return _slowest_plans(_priced(work, price_on, row[0], row[-1]))
    if work.kind in WAYS:
        return _transfer(work, shape, row, price_on)
    stands = row[work.stage]
    if len(stands) == 1:
        return price_on(stands[0][0], work)
    scaled = (_times(price_on(kind, work), factor) for kind, factor in stands)
    return max(scaled, key=lambda cost: cost.seconds)


def _transfer(
    work: Work, shape: PipelineShape, row: Sequence[Standing], price_on: PriceOn
) -> WorkCost:
    """Return a transfer at the slower end, and what its receivers gather at theirs."""
    sender, receiver = shape.stage(work.chunk), shape.stage(work.chunk + WAYS[work.kind])
    between = _slowest_plans(_priced(work, price_on, row[sender], row[receiver]))
    inside = _slowest_plans(_priced(work, price_on, row[receiver]))
    plans = tuple(
        own if own.group.stride else both
        for both, own in zip(between.plans, inside.plans, strict=True)
    )
    return _with_plans(between, plans)


def _priced(work: Work, price_on: PriceOn, *stages: Standing) -> list[WorkCost]:
    """Return what a work costs on each machine of some stages."""
    return [price_on(kind, work) for kind in sorted({k for stands in stages for k, _ in stands})]


def _holders(work: Work, shape: PipelineShape) -> tuple[int, ...]:
    """Return the stages whose ranks reduce or gather a work together: two in DualPipe."""
    if shape.placement is not Placement.BIDIRECTIONAL:
        return (work.stage,)
    return work.stage, shape.pp - 1 - work.stage


def _slowest_plans(costs: Sequence[WorkCost]) -> WorkCost:
    """Return a communication work of which each collective is the slowest of some machines'."""
    if len(costs) == 1:
        return costs[0]
    columns = zip(*(cost.plans for cost in costs), strict=True)
    return _with_plans(costs[0], tuple(max(plans, key=_seconds) for plans in columns))


def _with_plans(cost: WorkCost, plans: tuple[CommPlan, ...]) -> WorkCost:
    if all(new is old for new, old in zip(plans, cost.plans, strict=True)):
        return cost
    return replace(cost, plans=plans, seconds=sum(map(_seconds, plans)))


def _times(cost: WorkCost, factor: float) -> WorkCost:
    """Return a compute work that takes `factor` times as long."""
    if factor == 1.0:
        return cost
    longer = {kind: factor * seconds for kind, seconds in cost.by_category.items()}
    return replace(cost, seconds=factor * cost.seconds, by_category=longer)


def _seconds(plan: CommPlan) -> float:
    return plan.seconds
