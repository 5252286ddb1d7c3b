"""The layouts that were selected, played by the event engine and put in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from planner.crew import hands, in_shares
from planner.objectives import MILLION, Measure, price_of
from planner.result import PlannedLayout
from planner.selection import Candidate, Pool
from simulator.aims import Objective
from simulator.parallel.layout import ParallelLayout
from simulator.results import StepResult

_SHARED = 10_000
"""Passes, beside those of the best layout, from which on processes share the simulations: about
0.1 s of work, where starting a process takes 0.05 s."""


class _Forecast(NamedTuple):
    """A candidate with what is known of it; they sort by value, then by seconds a token."""

    value: float
    pace: float
    found: Candidate
    result: StepResult
    plays: bool


def ranked(
    pools: Sequence[Pool],
    best: Sequence[Candidate],
    objective: Objective,
    least: int,
    settled: Callable[[], None] = lambda: None,
) -> tuple[PlannedLayout, ...]:
    """Return the layouts by what is known of their value: of at least `least` it is simulated.

    The others keep their estimate; those that could still be the best are simulated too, as
    contention makes no step faster.
    """
    forecasts: list[_Forecast] = []
    first: tuple[float, float] | None = None
    results = _results(pools, best, max(1, least))
    for number, found in enumerate(best):
        plays = number < max(1, least) or (first is not None and found[:2] <= first)
        again = plays and number >= max(1, least)
        result = _result(pools, found, plays=True) if again else results[number]
        forecast = _forecast(pools[found.number], found, objective, result, plays=plays)
        forecasts.append(forecast)
        if plays:
            first = min(first or forecast[:2], forecast[:2])
        settled()
    forecasts.sort(key=lambda each: (*each[:2], each.found.number, each.found.key))
    return tuple(
        _planned(rank, each, pools[each.found.number].measure)
        for rank, each in enumerate(forecasts, start=1)
    )


def renumbered(layouts: Sequence[PlannedLayout]) -> tuple[PlannedLayout, ...]:
    """Return layouts whose ranks count from 1 in the order given."""
    return tuple(replace(entry, rank=rank) for rank, entry in enumerate(layouts, start=1))


def _results(
    pools: Sequence[Pool], best: Sequence[Candidate], played: int
) -> dict[int, StepResult]:
    """Return the steps of all layouts, those of the first `played` simulated, by their numbers.

    Where simulations are long processes share them; the estimates are made here.
    """

    def forecast(numbers: Sequence[int]) -> list[StepResult]:
        return [_result(pools, best[n], plays=n < played) for n in numbers]

    simulated, estimated = range(min(played, len(best))), range(played, len(best))
    passes = sum(_passes(pools[best[n].number], best[n].layout) for n in simulated[1:])
    count = min(hands(), len(simulated)) if passes >= _SHARED else 1
    shares = [list(simulated[first::count]) for first in range(count)]
    shares[0] += estimated
    results = in_shares(forecast, shares)
    return {
        number: result
        for share, found in zip(shares, results, strict=True)
        for number, result in zip(share, found, strict=True)
    }


def _passes(pool: Pool, layout: ParallelLayout) -> int:
    """Return the passes of a step over the chunks of all stages, forward and backward."""
    batch = pool.variant.scenario.file.job.global_batch_size
    return 2 * layout.virtual_stages * layout.micro_batches(batch)


def _result(pools: Sequence[Pool], found: Candidate, *, plays: bool) -> StepResult:
    cast = pools[found.number].variant.forecaster
    return cast.simulate(found.layout, spans=False) if plays else cast.estimate(found.layout)


def _forecast(
    pool: Pool, found: Candidate, objective: Objective, result: StepResult, *, plays: bool
) -> _Forecast:
    value = pool.measure.value(objective, result)
    return _Forecast(value, pool.measure.pace(result.step_time), found, result, plays)


def _planned(rank: int, forecast: _Forecast, measure: Measure) -> PlannedLayout:
    result, found, scenario = forecast.result, forecast.found, measure.variant.scenario
    tokens = scenario.file.job.tokens
    many = MILLION if tokens is None else 1
    priced = price_of(scenario).per_accelerator_hour is not None
    return PlannedLayout(
        rank=rank,
        layout=found.layout,
        simulated=forecast.plays,
        step_time=result.step_time,
        low=result.low,
        high=result.high,
        estimate=found.seconds,
        tokens_per_second=result.tokens_per_second,
        mfu=result.mfu,
        peak_memory=result.peak_memory,
        breakdown=result.breakdown,
        varied=measure.variant.varied,
        accelerators=result.world_size,
        days=None if tokens is None else measure.days(result.step_time),
        cost=many * measure.cost(result.step_time) if priced else None,
        energy=many * measure.energy(result.breakdown),
    )
