"""Every algorithm of the registry, on every collective it does and groups of several shapes."""

from __future__ import annotations

import itertools

from simulator.cost.collectives.registry import ALGORITHMS
from simulator.cost.collectives.request import links_of
from simulator.cost.collectives.select import plan_collective
from simulator.cost.plan import CommPlan
from simulator.parallel.groups import Collective, GroupShape
from tests.simulator.cost.collectives.machines import CURVED, machine

MACHINES = {"round": machine(), "curved": machine(constants=CURVED)}
SHAPES = [(2, 2), (3, 3), (8, 8), (2, 1), (8, 1), (16, 8), (32, 8), (12, 4), (64, 2)]
GROUPS = [GroupShape(size=size, per_domain=per_domain) for size, per_domain in SHAPES]
TO_HOST = "host_copy"
"""The one that needs no second rank: it is not free alone, and loads no link between ranks."""
CASES = [
    (name, collective, group)
    for name, algorithm in ALGORITHMS.items()
    for collective, group in itertools.product(sorted(algorithm.collectives), GROUPS)
    if algorithm.serves(group, links_of(MACHINES["round"]))
]

Case = tuple[str, Collective, GroupShape]


def plan(case: Case, payload: float, where: str = "round") -> CommPlan:
    name, collective, group = case
    return plan_collective(collective, payload, group, MACHINES[where], algorithm=name)


def named(case: Case) -> str:
    """Return how a test of a case is called."""
    name, collective, group = case
    return f"{name}-{collective}-{group.size}x{group.per_domain}"
