"""Collectives of several groups at the same time, on links that some of them share."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass

import simpy

from simulator.cost.plan import CommPlan
from simulator.engine.network import Network

Route = tuple[Hashable, ...]
"""Links that a flow passes, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One collective and where its bytes go: each phase is a flow on every route at once.

    Of a ring these are the ways from each rank to the next.
    """

    plan: CommPlan
    routes: tuple[Route, ...]


def simulate_together(placed: Sequence[Placed], capacity: Mapping[Hashable, float]) -> list[float]:
    """Return the seconds after which each of several collectives has ended that start together.

    `capacity` is the bytes/s of each link. Flows share links max-min fairly, and none is faster
    than its plan says that it is alone; a phase ends when its slowest flow does.

    >>> from simulator.cost.plan import CommPhase, LinkKind
    >>> from simulator.parallel.groups import Collective, GroupShape
    >>> phase = CommPhase(link=LinkKind.SCALE_OUT, fixed=1.0, wire_bytes=100.0, rate=50.0)
    >>> group = GroupShape(size=2, per_domain=1)
    >>> plan = CommPlan(
    ...     collective=Collective.SEND_RECV,
    ...     algorithm="direct",
    ...     payload=100.0,
    ...     group=group,
    ...     phases=(phase,),
    ... )
    >>> shared = Placed(plan=plan, routes=(("uplink",),))
    >>> simulate_together([shared], {"uplink": 50.0})
    [3.0]
    >>> simulate_together([shared, shared], {"uplink": 50.0})
    [5.0, 5.0]
    """
    env = simpy.Environment()
    network = Network(env, dict(capacity))
    ends = [0.0] * len(placed)
    for number, collective in enumerate(placed):
        env.process(_play(env, network, collective, number, ends))
    env.run()
    return ends


def _play(
    env: simpy.Environment, network: Network, placed: Placed, number: int, ends: list[float]
) -> Generator[simpy.Event, None, None]:
    for phase in placed.plan.phases:
        yield env.timeout(phase.fixed)
        if phase.wire_bytes:
            flows = [
                env.process(network.transfer(route, phase.wire_bytes, phase.rate))
                for route in placed.routes
            ]
            yield env.all_of(flows)
    ends[number] = env.now
