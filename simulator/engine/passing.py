"""A pass that sends over shared links: compute and flows in turn, as long as estimated if alone."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import simpy

from simulator.cost.plan import Burst
from simulator.cost.priced import WorkCost
from simulator.engine.network import Network
from simulator.engine.routes import Stop

Process = Generator[simpy.Event, None, None]


class Pace(Protocol):
    """Where the parts of a pass run."""

    def delay(self, seconds: float) -> Process:
        """Return when compute that takes `seconds` alone has run."""
        ...

    def start(self, seconds: float) -> Process:
        """Start such compute; what is returned waits for its end."""
        ...

    def transfer(
        self,
        links: tuple[Hashable, ...],
        size: float,
        cap: float,
        weights: tuple[float, ...] | None = None,
    ) -> Process:
        """Return when `size` bytes have passed `links`, at `cap` bytes/s at most."""
        ...


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """Compute that nothing slows, and flows that only others on their links do."""

    env: simpy.Environment
    network: Network

    def delay(self, seconds: float) -> Process:
        """Return after `seconds`."""
        yield self.env.timeout(seconds)

    def start(self, seconds: float) -> Process:
        """Start compute of `seconds`; what is returned waits for its end."""
        return self._until(self.env.now + seconds)

    def _until(self, end: float) -> Process:
        if end > self.env.now:
            yield self.env.timeout(end - self.env.now)

    def transfer(
        self,
        links: tuple[Hashable, ...],
        size: float,
        cap: float,
        weights: tuple[float, ...] | None = None,
    ) -> Process:
        """Return when `size` bytes have passed `links`, at `cap` bytes/s at most."""
        yield from self.network.transfer(links, size, cap, weights=weights)


def pass_through(
    pace: Pace, cost: WorkCost, stops: Sequence[Stop], *, turns: int, factor: float
) -> Process:
    """Run a pass in `turns` equal parts: of each first the compute, then what it sends.

    `stops` are the links of its bursts. Alone it takes `cost.seconds` x `factor`, that of its rank.
    """
    own = cost.seconds - sum(burst.seconds for burst in cost.bursts)
    parts = [_part(burst, turns, factor) for burst in cost.bursts]
    for _ in range(turns):
        if own > 0:
            yield from pace.delay(own / turns * factor)
        for burst, stop in zip(parts, stops, strict=True):
            yield from _burst(pace, burst, stop)


def _part(burst: Burst, turns: int, factor: float) -> Burst:
    """Return one of `turns` parts of a burst, `factor` times as long."""
    phase = replace(
        burst.phase,
        fixed=burst.phase.fixed / turns * factor,
        wire_bytes=burst.phase.wire_bytes / turns,
        rate=burst.phase.rate / factor,
    )
    return replace(burst, phase=phase, beside=burst.beside / turns * factor)


def _burst(pace: Pace, burst: Burst, stop: Stop) -> Process:
    """Send a burst while the compute beside it runs; return when both are over."""
    phase = burst.phase
    if not stop.links:
        yield from pace.delay(burst.seconds)
        return
    rest = pace.start(burst.beside) if burst.beside else None
    if phase.fixed:
        yield from pace.delay(phase.fixed)
    yield from pace.transfer(stop.links, phase.wire_bytes, phase.rate, stop.weights)
    if rest is not None:
        yield from rest
