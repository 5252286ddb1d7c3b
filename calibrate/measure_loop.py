"""The measuring loop: warm-up, blocks of runs, outliers, the slowest rank; knows nothing of torch.

`torch.utils.benchmark` times one process; here all ranks must do the same number of runs and agree
on the slowest, so that the loop is our own (host launch costs do use it: `measure_host`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import sleep

from calibrate.limits import LEAST_BLOCKS, OUTLIER_MADS, WARM_UP_MEDIANS, Limits, warm_up_blocks
from calibrate.measuring import Outcome, Ranks

__all__ = ["Limits", "Run", "measure_runs", "summarise"]

Run = Callable[[int], float]
"""Does so many runs and returns this rank's seconds for all of them."""
_WARM_UP_SHARE = 0.5
"""Of `max_seconds`, after which the loop measures although the medians still differ; what still
drifts then shows in the spread."""


def measure_runs(run: Run, ranks: Ranks, limits: Limits) -> Outcome:
    """Return the seconds of one run: the median over blocks of the slowest rank's.

    All ranks do the same number of runs, as every decision is taken on the slowest rank's times.
    """
    watch = _Watch(run=run, ranks=ranks, rest=limits.rest)
    runs = _warm_up(watch, limits)
    own: list[float] = []
    slowest: list[float] = []
    while len(slowest) < limits.blocks:
        if len(slowest) >= LEAST_BLOCKS and watch.elapsed >= limits.max_seconds:
            break
        mine, shared = watch.block(runs)
        own.append(mine)
        slowest.append(shared)
    return summarise(slowest, own, ranks)


def summarise(slowest: Sequence[float], own: Sequence[float], ranks: Ranks) -> Outcome:
    """Return the outcome of blocks: seconds of a run of the slowest rank, and of this one."""
    kept = _kept(slowest)
    times = [slowest[index] for index in kept]
    middle = median(times)
    quarters = quantiles(times, n=4, method="inclusive") if len(times) > 1 else [middle] * 3
    mine = median(own[index] for index in kept)
    return Outcome(
        seconds=middle,
        spread=(quarters[2] - quarters[0]) / middle,
        samples=len(times),
        outliers=len(slowest) - len(times),
        by_rank=ranks.gather(mine) if ranks.size > 1 else (),
    )


@dataclass(slots=True, kw_only=True)
class _Watch:
    """Runs blocks and knows how long all of them took on the slowest rank."""

    run: Run
    ranks: Ranks
    rest: float
    elapsed: float = field(default=0.0)

    def first(self) -> float:
        """Return the seconds of a first run, which also loads and compiles: it is not counted."""
        return self.ranks.slowest(self.run(1))

    def block(self, runs: int) -> tuple[float, float]:
        """Return the seconds of one of `runs` runs: this rank's, and the slowest rank's."""
        mine = self.run(runs) / runs
        shared = self.ranks.slowest(mine)
        self.elapsed += shared * runs
        sleep(self.rest * shared * runs)
        return mine, shared


def _warm_up(watch: _Watch, limits: Limits) -> int:
    """Run until three medians in a row agree; return the runs that fill a block."""
    medians: list[float] = []
    latest = watch.first()
    while not _agree(medians, limits.agreement):
        if medians and watch.elapsed >= _WARM_UP_SHARE * limits.max_seconds:
            break
        blocks = warm_up_blocks(latest, limits)
        runs = _filling(limits.block_seconds / WARM_UP_MEDIANS, latest)
        latest = median(watch.block(runs)[1] for _ in range(blocks))
        medians.append(latest)
    return _filling(limits.block_seconds, latest)


def _agree(medians: Sequence[float], agreement: float) -> bool:
    """Return whether the last three differ by at most `agreement`."""
    last = medians[-WARM_UP_MEDIANS:]
    return len(last) == WARM_UP_MEDIANS and max(last) <= (1 + agreement) * min(last)


def _filling(seconds: float, one: float) -> int:
    """Return the runs of `one` second each that take at least `seconds`."""
    return max(1, math.ceil(seconds / one)) if one > 0 else 1


def _kept(times: Sequence[float]) -> list[int]:
    """Return which times lie within `OUTLIER_MADS` of the median.

    All where most are equal, and where fewer than `LEAST_BLOCKS` would be left.
    """
    middle = median(times)
    deviations = [abs(time - middle) for time in times]
    limit = OUTLIER_MADS * median(deviations)
    kept = [index for index, deviation in enumerate(deviations) if deviation <= limit]
    return kept if limit > 0 and len(kept) >= LEAST_BLOCKS else list(range(len(times)))
