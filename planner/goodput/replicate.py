"""Many runs: rates, step time and failures drawn for each, and what is asked of them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, inf, log1p
from statistics import NormalDist

import numpy as np

from planner.goodput.draws import RandomDraws
from planner.goodput.interval import expected_stretch
from planner.goodput.process import play_run
from planner.goodput.rates import NOTHING_FAILS, Hazard, ReliabilityFile, drawn_hazard
from planner.goodput.shape import Played, RunShape
from planner.hypercube import hypercube
from simulator.errors import InfeasibleError, InputError, Problem
from simulator.hardware.profile import Profile

P10, P50, P90 = 0.1, 0.5, 0.9
_Z_90 = NormalDist().inv_cdf(P90)
_MOST = 50.0
"""Wall time over that without failures above which a run is said to make no progress."""
MOST_FAILURES = 5e6
"""Failures in all runs together, above which they are not simulated: minutes of computing."""
_RATE_STREAM = 0
"""Of random numbers; `draws` has its own."""
_PACE_STREAM = 4
"""Of what all runs share; `draws` has 1 to 3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """One quantity over all simulated runs."""

    p10: float
    p50: float
    p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What is drawn once for a whole run."""

    number: int
    """Of the run, from 0."""
    hazard: Hazard
    pace: float
    """Step time over its forecast."""


def draw_worlds(
    files: Sequence[ReliabilityFile],
    profile: Profile,
    nodes: int,
    spread: float,
    *,
    seed: int,
    runs: int,
) -> tuple[World, ...]:
    """Return the failure rates and the pace of each run.

    Pace is log-normal, 1 in the median, with 80 % between 1 / (1 + spread) and 1 + spread, as the
    interval of a step time. One run has each of as many equally likely slices of it as there are
    runs, so that quantiles are not those of a lucky sample. All files are as likely: how far they
    differ is what is not known of a new cluster; they take turns, so that also a few of the runs
    have as much of each. Without `files` nothing fails.
    """
    paces = hypercube(np.random.default_rng((seed, 0, _PACE_STREAM)), runs, 1)[:, 0]
    worlds = []
    for number in range(runs):
        hazard = NOTHING_FAILS
        if files:
            rng = np.random.default_rng((seed, number, _RATE_STREAM))
            hazard = drawn_hazard(files[number % len(files)], profile, nodes, rng)
        pace = exp(float(paces[number]) * log1p(spread) / _Z_90)
        worlds.append(World(number=number, hazard=hazard, pace=pace))
    return tuple(worlds)


def play_worlds(
    shape: RunShape, worlds: Sequence[World], seed: int, where: str = ""
) -> tuple[Played, ...]:
    """Return what becomes of the run in each world.

    Raises:
        InfeasibleError: failures come so fast that hardly any checkpoint is reached.
    """
    played = []
    for world in worlds:
        here = paced(shape, world.pace)
        _check_progress(here, world.hazard, where)
        played.append(play_run(here, world.hazard, RandomDraws(seed, world.number)))
    return tuple(played)


def paced(shape: RunShape, pace: float) -> RunShape:
    """Return a run whose steps take `pace` times as long; its checkpoints stay at their steps."""
    return replace(shape, work=shape.work * pace, interval=shape.interval * pace)


def quantiles(values: Sequence[float]) -> Quantiles:
    """Return the 10th, 50th and 90th percentile."""
    low, middle, high = np.quantile(values, (P10, P50, P90))
    return Quantiles(p10=float(low), p50=float(middle), p90=float(high))


def over(played: Sequence[Played], value: Callable[[Played], float]) -> Quantiles:
    """Return the quantiles of one quantity of the runs."""
    return quantiles([value(run) for run in played])


def _check_progress(shape: RunShape, hazard: Hazard, where: str) -> None:
    mtbf, restart = hazard.mtbf, shape.detection + shape.restart
    interval = min(shape.interval, shape.work)
    delta = shape.stall + shape.write
    undisturbed = interval + delta
    if mtbf < inf and expected_stretch(interval, delta, mtbf, restart) > _MOST * undisturbed:
        raise InfeasibleError(
            Problem(
                where=where,
                key="run.checkpoint",
                found=f"a failure every {mtbf:.3g} s, {interval:.3g} s between checkpoints that "
                f"take {delta:.3g} s, {restart:.3g} s to start again",
                rule=f"the run would take over {_MOST:g} times as long as without failures",
                fix="shorter intervals, faster checkpoints or restarts, or fewer nodes",
            )
        )


def check_count(shape: RunShape, worlds: Sequence[World], where: str) -> None:
    """Raise `InputError` where the runs have more failures than are simulated."""
    count = shape.work * sum(world.hazard.per_second for world in worlds)
    if count > MOST_FAILURES:
        runs = int(MOST_FAILURES / count * len(worlds))
        raise InputError(
            Problem(
                where=where,
                key="run.replications",
                found=f"{len(worlds)} runs with {count / len(worlds):.3g} failures each",
                rule=f"at most {MOST_FAILURES:g} failures are simulated",
                fix=f"at most {runs} runs" if runs else "a shorter run, or other failure rates",
            )
        )
