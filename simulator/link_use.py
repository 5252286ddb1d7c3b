"""What the links behind the NICs carried in a played step."""

from __future__ import annotations

import numpy as np

from simulator.cost.network.network import Network
from simulator.cost.network.routed import Routed
from simulator.engine.record import Utilisation
from simulator.engine.step import EngineRun
from simulator.results import LinkUse

_FULL = 0.999
"""Share of its capacity from which a link counts as full."""


def link_uses(
    network: Network, routed: Routed, run: EngineRun, step_time: float
) -> tuple[LinkUse, ...]:
    """Return the use of every class of links that carried anything, the busiest first."""
    classes = routed.classes
    order = np.argsort(-routed.carried / classes.capacity, kind="stable")
    return tuple(
        LinkUse(
            name=network.topology.link_name(int(classes.first[number])),
            links=tuple(classes.members(number).tolist()),
            capacity=float(classes.capacity[number]),
            carried=float(routed.carried[number]),
            full=_full_share(
                run.utilisation.get(int(number)), float(classes.capacity[number]), step_time
            ),
        )
        for number in order
        if routed.carried[number] > 0
    )


def _full_share(use: Utilisation | None, capacity: float, step_time: float) -> float | None:
    """Return the share of a step in which a link is full; None where that was not recorded."""
    if use is None:
        return None
    full = np.asarray(use.rates) >= _FULL * capacity
    return float(np.diff(use.times)[full].sum()) / step_time
