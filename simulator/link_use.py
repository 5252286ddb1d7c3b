"""What the links behind the NICs carried in a played step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simulator.cost.network.network import Network
from simulator.cost.network.routed import Routed
from simulator.engine.record import Utilisation
from simulator.engine.step import EngineRun
from simulator.results import LinkUse, LoadCurve
from simulator.topology.graph import FloatArray
from simulator.topology.topology import Topology

_FULL = 0.999
"""Share of its capacity from which a link counts as full."""


def link_uses(network: Network, routed: Routed, run: EngineRun) -> tuple[LinkUse, ...]:
    """Return the use of every class of links that carried anything, the busiest first."""
    classes = routed.classes
    order = np.argsort(-routed.carried / classes.capacity, kind="stable")
    return tuple(
        LinkUse(
            name=network.topology.link_name(int(classes.first[number])),
            links=tuple(classes.members(number).tolist()),
            capacity=float(classes.capacity[number]),
            carried=float(routed.carried[number]),
            full=None if load is None else _full_share(load, classes.capacity[number], run),
            load=load,
        )
        for number in order
        if routed.carried[number] > 0
        for load in [_load(run.utilisation.get(int(number)), run.step_time)]
    )


def link_utilisation(links: Sequence[LinkUse], topology: Topology, step_time: float) -> FloatArray:
    """Return (links,) bytes that each carries in a step over what it could carry.

    Links inside units that carry nothing to or from a NIC are NaN: what collectives inside a
    scale-up domain load of them is not counted.
    """
    found = np.zeros(topology.links)
    found[: topology.first_up] = np.nan
    for use in links:
        found[list(use.links)] = use.utilisation(step_time)
    return found


def _load(use: Utilisation | None, step_time: float) -> LoadCurve | None:
    """Return what was recorded of a link until the end of the step; others may send on."""
    if use is None:
        return None
    times = [time for time in use.times[:-1] if time < step_time]
    end = min(use.times[-1], step_time)
    return LoadCurve(times=(*times, end), rates=use.rates[: len(times)])


def _full_share(load: LoadCurve, capacity: float, run: EngineRun) -> float:
    """Return the share of the played step in which a link is full."""
    full = np.asarray(load.rates) >= _FULL * capacity
    return float(np.diff(load.times)[full].sum()) / run.step_time
