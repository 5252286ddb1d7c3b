"""The best of all orders of few ranks, by looking at every one."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from planner.placement_score import Goal, Order, order_at, score_of
from planner.placement_search import FoundPlaces, check_size, result_of, too_many
from planner.placement_traffic import Demand
from simulator.errors import InputError

MOST_PROVEN = 8
"""Accelerators up to which all orders can be looked at: 8! are 40,320."""


def prove_places(demand: Demand, *, goal: Goal = Goal.BUSIEST_LINK) -> FoundPlaces:
    """Return the best places of all there are: it looks at every order of the ranks.

    Raises:
        InputError: there are more than `MOST_PROVEN` accelerators, or less than ranks.
    """
    check_size(demand)
    size = demand.router.topology.size
    if size > MOST_PROVEN:
        raise InputError(too_many(f"{size} accelerators", MOST_PROVEN, "search instead"))
    ranks, looked = demand.layout.world_size, 0
    best = order_at(demand, np.arange(ranks))
    for order in permutations(range(size), ranks):
        looked, places = looked + 1, np.array(order)
        loads = {
            axis: demand.by_groups(axis, places[groups]) for axis, groups in demand.groups.items()
        }
        score = score_of(demand.router.topology, loads)
        if score.key(goal) < best.score.key(goal):
            best = Order(places=places, loads=loads, score=score)
    return result_of(demand, goal, best, start="", swaps=0, evaluated=looked, proven=True)
