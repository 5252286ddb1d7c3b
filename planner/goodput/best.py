"""The best interval between checkpoints and the best number of spare nodes, by simulation.

All candidates are simulated under the same failures (common random numbers), so that they differ
by what was chosen and not by luck. Young's and Daly's intervals are candidates among the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from statistics import fmean

from planner.goodput.interval import daly_higher_order, daly_interval, young_interval
from planner.goodput.replicate import World, play_worlds
from planner.goodput.shape import RunShape
from simulator.errors import InfeasibleError
from simulator.units import SECONDS_PER_DAY

SEARCH_RUNS = 30
"""Runs that each candidate is simulated in, at most."""
_LEAST_RUNS = 10
"""And at least: each has failure rates of its own."""
_ENOUGH_FAILURES = 2_000
"""Failures of one candidate in all its runs, after which no more runs are needed."""
_COARSE = tuple(2.0 ** (power / 2.0) for power in range(-2, 3))
"""Candidates over Daly's interval."""
_FINE = tuple(2.0 ** (power / 4.0) for power in (-1, 1))
"""More of them, over the best of those."""
_SPREADS = (0.0, 1.0, 2.0, 3.0)
"""Standard deviations of the nodes in repair that spares are to cover beyond their mean."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval between checkpoints, and what it does."""

    name: str
    steps: int
    seconds: float
    """Of training."""
    goodput: float
    """Mean over the runs of the search; 0 where the run makes no progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spares:
    """A number of spare nodes, and what it does."""

    nodes: int
    days: float
    """Mean wall time of the run."""
    node_days: float
    """Mean, spares included: what is paid."""


def search_worlds(shape: RunShape, worlds: Sequence[World]) -> Sequence[World]:
    """Return the worlds in which candidates are compared: fewer where each has many failures."""
    failures = shape.work * fmean(world.hazard.per_second for world in worlds)
    runs = ceil(_ENOUGH_FAILURES / failures) if failures else 1
    return worlds[: min(SEARCH_RUNS, max(_LEAST_RUNS, runs))]


def compare_intervals(
    shape: RunShape, worlds: Sequence[World], seed: int, step_time: float
) -> tuple[Interval, ...]:
    """Return the best interval, then those of Young and Daly, each in whole steps.

    None is shorter than the write of a checkpoint beside training takes, nor longer than the run
    or the time between planned stops, after which the interval begins anew.
    """
    mtbf = 1.0 / fmean(world.hazard.per_second for world in worlds)
    delta, restart = shape.stall, shape.detection + shape.restart
    least = max(1, ceil(shape.write / step_time))
    most = max(1, round(min(shape.work, shape.maintenance_every) / step_time))

    def steps_of(seconds: float) -> int:
        return most if seconds == inf else min(most, max(least, round(seconds / step_time)))

    known: dict[int, float] = {}

    def goodput(steps: int) -> float:
        if steps not in known:
            known[steps] = _goodput(replace(shape, interval=steps * step_time), worlds, seed)
        return known[steps]

    def best(candidates: Iterable[int]) -> int:
        return max(sorted(set(candidates)), key=goodput)

    named = {
        "Young": steps_of(young_interval(delta, mtbf)),
        "Daly": steps_of(daly_interval(delta, mtbf, restart)),
        "Daly, higher order": steps_of(daly_higher_order(delta, mtbf)),
    }
    centre = named["Daly, higher order"]
    coarse = best([*named.values(), *(steps_of(centre * f * step_time) for f in _COARSE)])
    fine = best([coarse, *(steps_of(coarse * f * step_time) for f in _FINE)])
    return tuple(
        Interval(name=name, steps=steps, seconds=steps * step_time, goodput=goodput(steps))
        for name, steps in {"best": fine, **named}.items()
    )


def compare_spares(shape: RunShape, worlds: Sequence[World], seed: int) -> tuple[Spares, ...]:
    """Return numbers of spare nodes, rising, with the days and node-days of the run.

    They are 0, the one given, and the mean number of nodes in repair and one to three of its
    standard deviations (Poisson) more.
    """
    losing = fmean(world.hazard.per_second * world.hazard.loses_node for world in worlds)
    out = losing * shape.repair
    counts = {0, shape.spares, *(ceil(out + spread * sqrt(out)) for spread in _SPREADS)}
    found = []
    for count in sorted(counts):
        runs = play_worlds(replace(shape, spares=count), worlds, seed)
        days = fmean(run.wall for run in runs) / SECONDS_PER_DAY
        paid = days * (shape.levels[0].nodes + count)
        found.append(Spares(nodes=count, days=days, node_days=paid))
    return tuple(found)


def cheapest(spares: Sequence[Spares]) -> Spares:
    """Return the number of spares with the fewest node-days, of equals the fewest."""
    return min(spares, key=lambda each: (each.node_days, each.nodes))


def _goodput(shape: RunShape, worlds: Sequence[World], seed: int) -> float:
    try:
        runs = play_worlds(shape, worlds, seed)
    except InfeasibleError:
        return 0.0
    return fmean(run.goodput for run in runs)
