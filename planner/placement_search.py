"""Where ranks should stand: an order of ranks that asks little of the network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.placement_moves import axis_orders, exchanged, exchanges
from planner.placement_score import (
    Goal,
    Order,
    PlacementScore,
    order_at,
    score_of,
)
from planner.placement_traffic import Demand
from planner.search import Progress
from simulator.errors import InputError, Problem
from simulator.topology.graph import IntArray
from simulator.topology.places import Places


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPlaces:
    """An order of ranks, and what it gains over ranks one after another."""

    places: Places
    goal: Goal
    start: str
    """Order of the axes, innermost first, that the search went on from: "tp-pp-cp-dp"."""
    before: PlacementScore
    """Of ranks one after another ("block")."""
    after: PlacementScore
    swaps: int
    """Exchanges that made it better."""
    evaluated: int
    """Orders that were looked at."""
    proven: bool
    """Whether all orders were, so that none is better."""

    @property
    def gain(self) -> float:
        """Part of what `goal` counts that the order saves."""
        before, after = self.before.key(self.goal)[0], self.after.key(self.goal)[0]
        return 1 - after / before if before > 0 else 0.0


def search_places(
    demand: Demand,
    *,
    goal: Goal = Goal.BUSIEST_LINK,
    budget: int = 2000,
    progress: Progress | None = None,
) -> FoundPlaces:
    """Return the best places found when about `budget` orders have been looked at.

    It begins with ranks in the order of their axes, each order of the axes once. From the best of
    these, and from the others while the budget lasts, it exchanges units, then single ranks, keeps
    every exchange that helps, and ends when none does. What an exchange gains is exact: the loads
    of the groups that move are taken away and added where they go. The same input gives the same
    answer. `progress` is told the orders looked at and, of fewer, the budget.

    Raises:
        InputError: there are more ranks than accelerators, or some cannot reach each other.
    """
    check_size(demand)
    orders = axis_orders(demand.layout)
    starts = [(name, order_at(demand, places)) for name, places in orders.items()]
    starts.sort(key=lambda start: start[1].score.key(goal))
    looked = len(starts)
    found: list[tuple[str, _End]] = []

    def tell(more: int) -> None:
        if progress is not None:
            progress(looked + more, max(budget, looked + more))

    for name, start in starts:
        if found and looked >= budget:
            break
        end = _descended(demand, start, goal, max(0, budget - looked), tell)
        looked += end.looked
        found.append((name, end))
    name, best = min(found, key=lambda pair: pair[1].order.score.key(goal))
    return result_of(demand, goal, best.order, start=name, swaps=best.swaps, evaluated=looked)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _End:
    """An order that no exchange betters (or the budget's last), and how it was come to."""

    order: Order
    swaps: int
    looked: int


def _descended(
    demand: Demand, start: Order, goal: Goal, most: int, tell: Callable[[int], None]
) -> _End:
    """Return where exchanges lead of which each helps, `most` of them looked at."""
    topology = demand.router.topology
    order, swaps, looked, since = start, 0, 0, 0
    moves = list(exchanges(topology.units, topology.width, most // 2))
    while since < len(moves) and looked < most:
        after = exchanged(order.places, *moves[looked % len(moves)])
        looked, since = looked + 1, since + 1
        tell(looked)
        score = _score_after(demand, order, after)
        if score is not None and score.key(goal) < order.score.key(goal):
            order, swaps, since = order_at(demand, after), swaps + 1, 0
    return _End(order=order, swaps=swaps, looked=looked)


def _score_after(demand: Demand, order: Order, after: IntArray) -> PlacementScore | None:
    """Return the score of an order that another one becomes; None where nothing changes."""
    loads = dict(order.loads)
    for axis in demand.groups:
        change = demand.change(axis, order.places, after)
        if change is not None:
            loads[axis] = loads[axis] + change
    if all(loads[axis] is order.loads[axis] for axis in loads):
        return None
    return score_of(demand.router.topology, loads)


def result_of(
    demand: Demand,
    goal: Goal,
    order: Order,
    *,
    start: str,
    swaps: int,
    evaluated: int,
    proven: bool = False,
) -> FoundPlaces:
    """Return what was found, beside ranks one after another."""
    topology = demand.router.topology
    return FoundPlaces(
        places=Places(order="searched", accelerators=order.places, node_size=topology.width),
        goal=goal,
        start=start,
        before=order_at(demand, np.arange(demand.layout.world_size)).score,
        after=order.score,
        swaps=swaps,
        evaluated=evaluated,
        proven=proven,
    )


def check_size(demand: Demand) -> None:
    """Check that there is an accelerator for each rank; raises `InputError`."""
    ranks, size = demand.layout.world_size, demand.router.topology.size
    if ranks > size:
        raise InputError(too_many(f"{ranks} ranks", size, "more nodes, or a smaller layout"))


def too_many(found: str, most: int, fix: str) -> Problem:
    """Return the problem of more than can be placed."""
    return Problem(key="placement", found=found, rule=f"at most {most} can be placed", fix=fix)
