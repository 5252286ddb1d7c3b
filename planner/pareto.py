"""The Pareto front of two objectives: the layouts to which no other is as good in both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from planner.budget import Budget
from planner.result import Front, FrontLayout
from planner.selection import Bounded, Pool, all_bounded, closer
from simulator.aims import Objective
from simulator.parallel.layout import ParallelLayout

Pair = tuple[float, float]


class FrontPoint(NamedTuple):
    """A layout on the front, with its values by both objectives."""

    values: Pair
    seconds: float
    """Estimated step time."""
    pool: Pool
    layout: ParallelLayout


def front_of(
    pools: Sequence[Pool], objectives: tuple[Objective, Objective], budget: Budget | None = None
) -> Front:
    """Return the front as a record, its values in the units of `PlannedLayout`."""
    points, left_open = pareto_front(pools, objectives, budget)
    shown = tuple(_shown(point, objectives) for point in points)
    return Front(objectives=objectives, layouts=shown, left_open=left_open)


def _shown(point: FrontPoint, objectives: tuple[Objective, Objective]) -> FrontLayout:
    variant, measure = point.pool.variant, point.pool.measure
    first, second = (
        measure.shown(objective, value)
        for objective, value in zip(objectives, point.values, strict=True)
    )
    return FrontLayout(
        layout=point.layout,
        varied=variant.varied,
        values=(first, second),
        step_time=point.seconds,
        accelerators=variant.scenario.world_size,
        peak_memory=variant.forecaster.peak_memory(point.layout),
    )


def pareto_front(
    pools: Sequence[Pool], objectives: tuple[Objective, Objective], budget: Budget | None = None
) -> tuple[list[FrontPoint], int]:
    """Return the front over the layouts of all variants within the limits, by the first objective.

    Exact, at estimated step times: a layout is passed over only where one that was estimated is as
    good in both objectives as the other can be at best. Of layouts equal in both, one is there.
    Once the budget is spent the front of those estimated so far, at least one, is returned with the
    number of layouts that could still be on it; else that is 0.
    """
    budget = budget or Budget()
    queue = list(all_bounded(pools, objectives))
    heapify(queue)
    found: list[FrontPoint] = []
    while queue and not (found and budget.spent):
        item = queue[0]
        if item.seconds > item.pool.measure.longest or _covered(item.values, found):
            heappop(queue)
        elif not item.is_close:
            heapreplace(queue, closer(item, objectives))
        else:
            heappop(queue)
            point = _estimated(item, objectives)
            budget.count()
            if point.seconds <= item.pool.measure.longest and not _covered(point.values, found):
                found = [each for each in found if not covers(point.values, each.values)]
                found.append(point)
    left_open = sum(
        item.seconds <= item.pool.measure.longest and not _covered(item.values, found)
        for item in queue
    )
    return sorted(found, key=lambda point: point.values), left_open


def covers(one: Iterable[float], other: Iterable[float]) -> bool:
    """Return whether `one` is at least as good as `other` by every objective; less is better."""
    return all(a <= b for a, b in zip(one, other, strict=True))


def _covered(values: Sequence[float], found: Iterable[FrontPoint]) -> bool:
    return any(covers(point.values, values) for point in found)


def _estimated(item: Bounded, objectives: tuple[Objective, Objective]) -> FrontPoint:
    pool, layout = item.pool, item.layout
    seconds = pool.variant.forecaster.step_time(layout)
    first, second = (pool.measure.estimate(x, layout, seconds) for x in objectives)
    return FrontPoint(values=(first, second), seconds=seconds, pool=pool, layout=layout)
