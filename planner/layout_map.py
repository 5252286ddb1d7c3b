"""The best layout of every tp and pp of a search, and why some have none."""

from __future__ import annotations

from collections.abc import Sequence

from planner.budget import Budget
from planner.result import MapBest, MapCell
from planner.search import fastest
from planner.selection import Pool
from simulator.api import Forecaster
from simulator.parallel.checks import Reason
from simulator.parallel.layout import ParallelLayout


def layout_map(pool: Pool, budget: Budget) -> tuple[MapCell, ...]:
    """Return a cell for every tp and pp of a job and cluster that was searched.

    Once the budget is spent, cells hold the best that was found until then: at least one layout
    where any fits.
    """
    fitting: dict[tuple[int, int], list[ParallelLayout]] = {}
    for layout in pool.feasible.fitting:
        fitting.setdefault((layout.tp, layout.pp), []).append(layout)
    forecaster = pool.variant.forecaster
    cells = []
    for (tp, pp), counts in pool.space.by_size.items():
        here = fitting.get((tp, pp), [])
        too_large = max(0, counts.legal - len(here))
        reasons = dict(counts.rejected) | ({Reason.MEMORY: too_large} if too_large else {})
        cells.append(
            MapCell(
                tp=tp,
                pp=pp,
                considered=len(here) + sum(reasons.values()),
                best=_best(forecaster, here, budget),
                reasons=reasons,
            )
        )
    return tuple(cells)


def _best(
    forecaster: Forecaster, layouts: Sequence[ParallelLayout], budget: Budget
) -> MapBest | None:
    if not layouts:
        return None
    layout = fastest(forecaster, layouts, 1, budget=budget).best[0].layout
    result = forecaster.estimate(layout)
    return MapBest(
        layout=layout,
        step_time=result.step_time,
        low=result.low,
        high=result.high,
        peak_memory=result.peak_memory,
    )
