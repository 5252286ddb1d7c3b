"""One GPU whose compute and communication slow each other while both run."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto

import simpy

from simulator.engine.network import Flow, Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    """How much slower work runs while work of the other side runs on the same GPU."""

    compute: tuple[float, ...]
    """k of each kind of work of the graph."""
    communication: float
    """m of every collective and transfer."""


class _Side(Enum):
    COMPUTE = auto()
    COMMUNICATION = auto()


@dataclass(slots=True, eq=False)
class _Job:
    """Work that progresses at 1 / slowdown while the other side of its GPU is busy."""

    side: _Side
    remaining: float
    """Seconds that it still takes alone."""
    slowdown: float
    changed: simpy.Event


class Gpu:
    """Owns what runs on one GPU. Rates change only when a side becomes busy or idle."""

    def __init__(self, env: simpy.Environment, network: Network, slowdown: float) -> None:
        self.env, self.network, self.slowdown = env, network, slowdown
        self.busy = dict.fromkeys(_Side, 0)
        self.jobs: list[_Job] = []
        self.flows: dict[Flow, float] = {}
        """Flows on shared links, with the cap that each has alone."""

    def compute(self, seconds: float, slowdown: float) -> Generator[simpy.Event, None, None]:
        """Return when a kernel that takes `seconds` alone has run."""
        with self._running(_Side.COMPUTE):
            yield from self._work(_Side.COMPUTE, seconds, slowdown)

    @contextmanager
    def communicating(self) -> Iterator[None]:
        """Count a collective as running."""
        with self._running(_Side.COMMUNICATION):
            yield

    def delay(self, seconds: float) -> Generator[simpy.Event, None, None]:
        """Return when a part of a collective that takes `seconds` alone has run."""
        yield from self._work(_Side.COMMUNICATION, seconds, self.slowdown)

    def transfer(
        self, links: tuple[Hashable, ...], size: float, cap: float
    ) -> Generator[simpy.Event, None, None]:
        """Return when `size` bytes have passed `links`, slower while compute runs."""
        yield from self.network.transfer(links, size, cap, self._watched)

    @contextmanager
    def _watched(self, flow: Flow) -> Iterator[None]:
        self.flows[flow] = flow.cap
        self._throttle(flow)
        yield
        del self.flows[flow]

    def _throttle(self, flow: Flow) -> None:
        slowdown = self.slowdown if self.busy[_Side.COMPUTE] else 1.0
        self.network.throttle(flow, self.flows[flow] / slowdown)

    @contextmanager
    def _running(self, side: _Side) -> Iterator[None]:
        self._count(side, 1)
        yield
        self._count(side, -1)

    def _count(self, side: _Side, change: int) -> None:
        """Let what runs on the other side know when this one becomes busy or idle."""
        was = self.busy[side]
        self.busy[side] = was + change
        if bool(was) == bool(self.busy[side]):
            return
        for job in self.jobs:
            if job.side is not side and job.slowdown > 1 and not job.changed.triggered:
                job.changed.succeed()
        if side is _Side.COMPUTE:
            for flow in list(self.flows):
                self._throttle(flow)

    def _work(
        self, side: _Side, seconds: float, slowdown: float
    ) -> Generator[simpy.Event, None, None]:
        """Run a job to its end, foreseen anew whenever its rate changes."""
        other = _Side.COMMUNICATION if side is _Side.COMPUTE else _Side.COMPUTE
        job = _Job(side, seconds, slowdown, self.env.event())
        self.jobs.append(job)
        while True:
            began, factor = self.env.now, slowdown if self.busy[other] else 1.0
            end = self.env.timeout(job.remaining * factor)
            yield end | job.changed
            if end.processed:
                break
            job.remaining = max(0.0, job.remaining - (self.env.now - began) / factor)
            job.changed = self.env.event()
        self.jobs.remove(job)
