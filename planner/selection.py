"""The layouts of all variants that are best by an objective: exactly those of a full evaluation."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from planner.bound import step_time_bound
from planner.budget import Budget
from planner.feasible import Feasible, LayoutKey, layout_key
from planner.objectives import TIMED, Measure
from planner.search import fastest
from planner.space import Space
from planner.variants import Variant
from simulator.aims import Objective
from simulator.parallel.layout import ParallelLayout

Settled = Callable[[int], None]
"""Called with the number of layouts that have been estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The layouts of one variant, and which of them fit."""

    variant: Variant
    space: Space
    feasible: Feasible
    measure: Measure


class Candidate(NamedTuple):
    """A layout of a variant by what an objective makes of it; ties go to the faster one."""

    value: float
    pace: float
    """Seconds a token."""
    number: int
    """Of the variant."""
    key: LayoutKey
    seconds: float
    """Estimated step time."""
    layout: ParallelLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """The best layouts, best first, and how many had to be estimated to be sure of it."""

    best: tuple[Candidate, ...]
    estimated: int
    beyond: Candidate | None = None
    """The best layout in step time, where it is beyond the limits of the search and no other is
    within them."""
    least_open: float | None = None
    """Where the search was cut short: what the value of any layout that it left open is at
    least."""


def select(
    pools: Sequence[Pool],
    objective: Objective,
    count: int,
    settled: Settled = lambda _: None,
    budget: Budget | None = None,
) -> Selected:
    """Return the `count` best layouts that keep to the limits of the search.

    Where step time alone decides inside a variant, the fastest of each variant hold the best.
    Else layouts are estimated in order of a lower bound of their value, until it is above the
    `count`-th best. Once the budget is spent the best so far are returned.
    """
    budget = budget or Budget()
    if objective in TIMED:
        return _of_fastest(pools, objective, count, settled, budget)
    return _best_first(pools, objective, count, settled, budget)


def candidate(
    pool: Pool, objective: Objective, layout: ParallelLayout, seconds: float
) -> Candidate:
    """Return a layout with the value of an objective at its estimated step time."""
    measure = pool.measure
    return Candidate(
        value=measure.estimate(objective, layout, seconds),
        pace=measure.pace(seconds),
        number=pool.variant.number,
        key=layout_key(layout),
        seconds=seconds,
        layout=layout,
    )


def _of_fastest(
    pools: Sequence[Pool], objective: Objective, count: int, settled: Settled, budget: Budget
) -> Selected:
    estimated = 0
    left_open: list[float] = []
    within: list[Candidate] = []
    beyond: list[Candidate] = []
    for pool in pools:
        before = estimated
        found = fastest(
            pool.variant.forecaster,
            pool.feasible.fits,
            count,
            lambda done, before=before: settled(before + done),  # type: ignore[misc]
            budget,
        )
        estimated += found.estimated
        if found.least_open is not None:
            layout = found.best[0].layout
            left_open.append(pool.measure.bound(objective, layout, found.least_open))
        for each in found.best:
            kept = within if each.seconds <= pool.measure.longest else beyond
            kept.append(candidate(pool, objective, each.layout, each.seconds))
    best = tuple(sorted(within)[:count])
    return Selected(
        best=best,
        estimated=estimated,
        beyond=_fastest_of(beyond, best),
        least_open=min(left_open, default=None),
    )


def _fastest_of(beyond: list[Candidate], best: Sequence[Candidate]) -> Candidate | None:
    """Return the fastest layout beyond the limits, where none is within them."""
    return min(beyond, key=lambda each: each[1:]) if beyond and not best else None


class Bounded(NamedTuple):
    """A layout by what its values are at least; a quick bound comes before a close one."""

    values: tuple[float, ...]
    pace: float
    number: int
    key: LayoutKey
    is_close: bool
    seconds: float
    """Step time at least."""
    pool: Pool
    layout: ParallelLayout


def all_bounded(pools: Sequence[Pool], objectives: Sequence[Objective]) -> Iterator[Bounded]:
    """Yield every layout that fits under its quick bound."""
    for pool in pools:
        for seconds, layout in pool.feasible.fits:
            yield _bounded(pool, objectives, layout, seconds, is_close=False)


def closer(item: Bounded, objectives: Sequence[Objective]) -> Bounded:
    """Return the same layout under its close bound."""
    close = step_time_bound(item.pool.variant.forecaster, item.layout)
    seconds = max(item.seconds, close)
    return _bounded(item.pool, objectives, item.layout, seconds, is_close=True)


def _bounded(
    pool: Pool,
    objectives: Sequence[Objective],
    layout: ParallelLayout,
    seconds: float,
    *,
    is_close: bool,
) -> Bounded:
    measure = pool.measure
    return Bounded(
        values=tuple(measure.bound(objective, layout, seconds) for objective in objectives),
        pace=measure.pace(seconds),
        number=pool.variant.number,
        key=layout_key(layout),
        is_close=is_close,
        seconds=seconds,
        pool=pool,
        layout=layout,
    )


def _best_first(
    pools: Sequence[Pool], objective: Objective, count: int, settled: Settled, budget: Budget
) -> Selected:
    queue = list(all_bounded(pools, (objective,)))
    heapify(queue)
    best: list[Candidate] = []
    beyond: list[Candidate] = []
    estimated, least_open = 0, None
    while queue:
        item = queue[0]
        if len(best) == count and (*item.values, item.pace) > best[-1][:2]:
            break
        if best and budget.spent:
            (least_open,) = item.values
            break
        if not item.is_close:
            heapreplace(queue, closer(item, (objective,)))
            continue
        heappop(queue)
        seconds = item.pool.variant.forecaster.step_time(item.layout)
        found = candidate(item.pool, objective, item.layout, seconds)
        insort(best if seconds <= item.pool.measure.longest else beyond, found)
        del best[count:]
        estimated += 1
        budget.count()
        settled(estimated)
    return Selected(
        best=tuple(best),
        estimated=estimated,
        beyond=_fastest_of(beyond, best),
        least_open=least_open,
    )
