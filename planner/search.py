"""Best-first search: the k fastest layouts of a space, without estimating them all."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from planner.bound import step_time_bound
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


def fastest(
    forecaster: Forecaster,
    layouts: Iterable[ParallelLayout],
    count: int,
    settled: Callable[[int], None] = lambda _: None,
) -> Found:
    """Return the `count` layouts of least estimated step time: exactly those of a full evaluation.

    Layouts are estimated in order of their lower bound, until that of the next is above the
    `count`-th best estimate, which then no other can beat. `settled` is told how many are done.
    """
    queue = sorted(_ranked(step_time_bound(forecaster, layout), layout) for layout in layouts)
    best: list[Ranked] = []
    for number, (bound, _, layout) in enumerate(queue):
        if len(best) == count and bound > best[-1].seconds:
            return Found(best=tuple(best), estimated=number)
        insort(best, _ranked(forecaster.step_time(layout), layout))
        del best[count:]
        settled(number + 1)
    return Found(best=tuple(best), estimated=len(queue))


def _ranked(seconds: float, layout: ParallelLayout) -> Ranked:
    return Ranked(seconds, layout_key(layout), layout)
