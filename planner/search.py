"""Best-first search: the k fastest layouts of a space, without estimating them all."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from planner.bound import step_time_bound
from planner.budget import Budget
from planner.division import Fit
from planner.feasible import LayoutKey, layout_key
from simulator.api import Forecaster
from simulator.parallel.layout import ParallelLayout

Progress = Callable[[int, int], None]
"""Called with the number of layouts that are settled, and that of all."""


class Ranked(NamedTuple):
    """A layout with its step time; they sort by time, ties by the layout."""

    seconds: float
    key: LayoutKey
    layout: ParallelLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The fastest layouts, best first, and how many had to be estimated to be sure of it."""

    best: tuple[Ranked, ...]
    estimated: int
    least_open: float | None = None
    """Where the search was cut short: seconds that every layout which it left open takes at
    least."""


def fastest(
    forecaster: Forecaster,
    fits: Iterable[Fit],
    count: int,
    settled: Callable[[int], None] = lambda _: None,
    budget: Budget | None = None,
) -> Found:
    """Return the `count` layouts of least estimated step time: exactly those of a full evaluation.

    Layouts are estimated in order of their lower bound, until that of the next is above the
    `count`-th best estimate, which then no other can beat. A quick bound, which is never above the
    close one, says for which of them the close one is needed. `settled` is told how many are done.
    Once the budget is spent the best so far are returned, at least one.
    """
    budget = budget or Budget()
    queue = [(least, layout_key(layout), False, layout) for least, layout in fits]
    heapify(queue)
    best: list[Ranked] = []
    estimated = 0
    while queue and not (len(best) == count and queue[0][0] > best[-1].seconds):
        if best and budget.spent:
            return Found(best=tuple(best), estimated=estimated, least_open=queue[0][0])
        bound, key, is_close, layout = queue[0]
        if not is_close:
            close = max(bound, step_time_bound(forecaster, layout))
            heapreplace(queue, (close, key, True, layout))
            continue
        heappop(queue)
        insort(best, Ranked(forecaster.step_time(layout), key, layout))
        del best[count:]
        estimated += 1
        budget.count()
        settled(estimated)
    return Found(best=tuple(best), estimated=estimated)
