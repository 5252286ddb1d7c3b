"""The best layout of every tp and pp of a search, and why some have none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from planner.budget import Budget
from planner.division import Fit
from planner.result import MapBest, MapCell
from planner.search import fastest
from planner.selection import Pool
from simulator.api import Forecaster
from simulator.parallel.checks import Reason

_Cells = dict[tuple[int, int], list[Fit]]


def layout_map(
    pool: Pool, budget: Budget, settled: Callable[[], None] = lambda: None
) -> tuple[MapCell, ...]:
    """Return a cell for every tp and pp of a job and cluster that was searched.

    Once the budget is spent, cells hold the best that was found until then, at least one layout
    where any fits, and what any other takes at least. `settled` is told of each cell.
    """
    fitting, balanced = pool.feasible.fits, pool.feasible.balanced
    plain = _by_size(fitting[: len(fitting) - balanced])
    extra = _by_size(fitting[len(fitting) - balanced :])
    forecaster = pool.variant.forecaster
    cells = []
    for (tp, pp), counts in pool.space.by_size.items():
        here, uneven = plain.get((tp, pp), []), extra.get((tp, pp), [])
        too_large = counts.legal - len(here)
        reasons = dict(counts.rejected) | ({Reason.MEMORY: too_large} if too_large else {})
        cells.append(
            MapCell(
                tp=tp,
                pp=pp,
                considered=len(here) + len(uneven) + sum(reasons.values()),
                best=_best(forecaster, [*here, *uneven], budget),
                reasons=reasons,
            )
        )
        settled()
    return tuple(cells)


def _by_size(fits: Iterable[Fit]) -> _Cells:
    cells: _Cells = {}
    for fit in fits:
        cells.setdefault((fit.layout.tp, fit.layout.pp), []).append(fit)
    return cells


def _best(forecaster: Forecaster, fits: Sequence[Fit], budget: Budget) -> MapBest | None:
    if not fits:
        return None
    found = fastest(forecaster, fits, 1, budget=budget)
    result = forecaster.estimate(found.best[0].layout)
    return MapBest(
        layout=found.best[0].layout,
        step_time=result.step_time,
        low=result.low,
        high=result.high,
        peak_memory=result.peak_memory,
        least_open=found.least_open,
    )
