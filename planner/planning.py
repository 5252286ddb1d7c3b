"""From a scenario to its best layouts: the order in which the parts of the planner work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.answer import Outcome, answer
from planner.budget import Budget
from planner.collection import uncollected
from planner.layout_map import layout_map
from planner.objectives import objective_problems
from planner.pareto import front_of
from planner.pools import pool_of
from planner.ranking import ranked
from planner.result import Plan
from planner.robust import compared
from planner.search import Progress
from planner.selection import Pool, select
from planner.variants import variants
from simulator.errors import InputError
from simulator.scenario import Scenario


@uncollected()
def plan(scenario: Scenario, *, progress: Progress | None = None, mapped: bool = False) -> Plan:
    """Return the best layouts of a scenario, how they were found and why others were not taken.

    Legal layouts within the memory limit are searched by the estimate of the objective, over all
    jobs and clusters that the search table varies. The event engine plays the best few of those
    found, and more until no other of them can be the best, as contention makes no step faster. All
    are ranked by what is known of them, ties by step time, then by the layout. For a robust choice
    the first few are compared under draws of the uncertain constants. `progress` is told how many
    layouts are settled, of how many. The same scenario gives the same plan; one that is cut short
    by `search.time_limit` says how much better any other layout could be. If `mapped` it also has
    the best layout of every tp and pp, which takes more estimates.

    Raises:
        InputError: the search table contradicts itself, or wants what the scenario lacks.
        UnsupportedError: the machine has no constants for the job's precision.
    """
    if problems := list(objective_problems(scenario)):
        raise InputError(*problems)
    search = scenario.file.search
    budget = Budget.of(search)
    pools = tuple(map(pool_of, variants(scenario)))
    cells = max(len(pool.space.by_size) for pool in pools) if mapped else 0
    bar = _Bar(progress, pools, search.top, cells)
    selected = select(pools, search.objective, search.top, bar.estimated, budget)
    bar.finish_search()
    layouts = ranked(pools, selected.best, search.objective, search.simulate, bar.played)
    layouts, drawn = compared(scenario, pools, layouts)
    wanted = search.pareto if selected.best else None
    front = front_of(pools, wanted, budget.again()) if wanted else None
    outcome = Outcome(pools=pools, selected=selected, layouts=layouts, drawn=drawn, front=front)
    found = answer(scenario, outcome)
    if not mapped:
        return found
    pool = outcome.pool_of(layouts[0]) if layouts else pools[0]
    return replace(found, cells=layout_map(pool, budget, bar.played))


class _Bar:
    """Tells a progress callback how far the search is; never goes back."""

    def __init__(
        self, callback: Progress | None, pools: Sequence[Pool], top: int, cells: int
    ) -> None:
        self.callback, self.done = callback, 0
        self.legal = sum(pool.space.legal + pool.feasible.balanced for pool in pools)
        self.too_large = sum(pool.feasible.too_large for pool in pools)
        self.total = self.legal + min(top, self.legal - self.too_large) + cells
        self._reach(self.too_large)

    def estimated(self, count: int) -> None:
        """So many layouts have been estimated."""
        self._reach(self.too_large + count)

    def finish_search(self) -> None:
        """Every layout has been settled."""
        self._reach(self.legal)

    def played(self) -> None:
        """One more of the best has been forecast, or one more cell of the map is known."""
        self._reach(self.done + 1)

    def _reach(self, done: int) -> None:
        self.done = max(self.done, done)
        if self.callback is not None:
            self.callback(self.done, self.total)
