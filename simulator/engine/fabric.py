"""The network that all stages of a step share: classes of links, and traffic of others on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import simpy

from simulator.cost.plan import Load
from simulator.engine.network import Flow, Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """Traffic that is not the step's: it takes its fair part of the links, for ever.

    With a `period` it is on for `duty` of each period, from the start of the step, and then off.
    """

    load: Load
    demand: float
    """Bytes/s that it takes at most."""
    period: float | None = None
    """Seconds; None is always on."""
    duty: float = 1.0
    """Share of each period in which it is on, above 0 and at most 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """What the engine knows of the network beyond the links of each rank."""

    capacity: Sequence[float] = ()
    """Bytes/s of one link of each class, by its number (see `Load`)."""
    background: tuple[Background, ...] = ()
    record: bool = False
    """Whether to record what every link carries over time."""


def play_background(
    env: simpy.Environment, network: Network, traffic: Background, is_over: Callable[[], bool]
) -> Generator[simpy.Event, None, None]:
    """Take up links until the step is over."""
    load = traffic.load

    def start() -> Flow:
        return network.start(load.links, math.inf, traffic.demand, load.weights)

    if traffic.period is None or traffic.duty == 1:
        start()
        return
    while not is_over():
        flow = start()
        yield env.timeout(traffic.period * traffic.duty)
        network.stop(flow)
        if not is_over():
            yield env.timeout(traffic.period * (1 - traffic.duty))
