"""GPUs whose compute and communication slow each other while both run."""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import simpy

from simulator.engine.network import Flow, Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Interference:
    """How much slower work runs while work of the other side runs on the same GPU."""

    compute: tuple[float, ...]
    """k of each kind of work of the graph."""
    communication: float
    """m of every collective and transfer."""


@dataclass(slots=True, eq=False)
class _Job:
    """Work that progresses at 1 / slowdown while its pace is slow."""

    remaining: float
    """Seconds that it still takes alone."""
    slowdown: float
    changed: simpy.Event


class _Pace:
    """Owns what runs at one pace: full, or slow while anything that disturbs it runs."""

    def __init__(self, env: simpy.Environment, network: Network) -> None:
        self.env, self.network = env, network
        self.disturbers = 0
        self.jobs: list[_Job] = []
        self.flows: dict[Flow, tuple[float, float]] = {}
        """Flows on shared links, with the cap that each has alone and its slowdown."""

    def disturb(self, change: int) -> None:
        """Count disturbers; let what runs know when the first comes or the last goes."""
        was = self.disturbers
        self.disturbers = was + change
        if bool(was) == bool(self.disturbers):
            return
        for job in self.jobs:
            if job.slowdown > 1 and not job.changed.triggered:
                job.changed.succeed()
        for flow in list(self.flows):
            self._throttle(flow)

    def work(self, seconds: float, slowdown: float) -> Generator[simpy.Event, None, None]:
        """Run a job to its end, foreseen anew whenever its rate changes."""
        job = _Job(seconds, slowdown, self.env.event())
        self.jobs.append(job)
        while True:
            began, factor = self.env.now, slowdown if self.disturbers else 1.0
            end = self.env.timeout(job.remaining * factor)
            yield end | job.changed
            if end.processed:
                break
            job.remaining = max(0.0, job.remaining - (self.env.now - began) / factor)
            job.changed = self.env.event()
        self.jobs.remove(job)

    @contextmanager
    def watched(self, slowdown: float, flow: Flow) -> Iterator[None]:
        """Throttle a flow while the pace is slow."""
        self.flows[flow] = flow.cap, slowdown
        self._throttle(flow)
        yield
        del self.flows[flow]

    def _throttle(self, flow: Flow) -> None:
        cap, slowdown = self.flows[flow]
        self.network.throttle(flow, cap / slowdown if self.disturbers else cap)


class _Paced:
    """What runs at one pace, `slowdown` times as long while that is slow."""

    pace: _Pace
    slowdown: float

    def delay(self, seconds: float) -> Generator[simpy.Event, None, None]:
        """Return when a part that takes `seconds` alone has run."""
        yield from self.pace.work(seconds, self.slowdown)

    def start(self, seconds: float) -> Generator[simpy.Event, None, None]:
        """Start such a part; what is returned waits for its end."""
        return _ended(self.pace.env.process(self.delay(seconds)))

    def transfer(
        self,
        links: tuple[Hashable, ...],
        size: float,
        cap: float,
        weights: tuple[float, ...] | None = None,
    ) -> Generator[simpy.Event, None, None]:
        """Return when `size` bytes have passed `links`."""
        watched = partial(self.pace.watched, self.slowdown)
        yield from self.pace.network.transfer(links, size, cap, watched, weights)


class Gpu(_Paced):
    """Owns what runs on one GPU. Rates change only when a side becomes busy or idle.

    Its own pace is that of its collectives, which are slow while it computes.
    """

    def __init__(self, env: simpy.Environment, network: Network, slowdown: float) -> None:
        self.env, self.network, self.slowdown = env, network, slowdown
        self.pace = _Pace(env, network)
        self.kernels = _Pace(env, network)
        self.collectives = [self.pace]
        """The pace of its own collectives, then of those that it takes part in with others."""
        self.computing = 0

    def compute(self, seconds: float, slowdown: float) -> Generator[simpy.Event, None, None]:
        """Return when a kernel that takes `seconds` alone has run."""
        with self.busy():
            yield from self.kernels.work(seconds, slowdown)

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Count compute as running."""
        self._compute(1)
        yield
        self._compute(-1)

    @contextmanager
    def communicating(self) -> Iterator[None]:
        """Count a collective as running."""
        self.kernels.disturb(1)
        yield
        self.kernels.disturb(-1)

    def _compute(self, change: int) -> None:
        """Let collectives on this GPU know when it begins or ceases to compute."""
        was = self.computing
        self.computing = was + change
        if bool(was) != bool(self.computing):
            for pace in self.collectives:
                pace.disturb(change)


class Kernel(_Paced):
    """A pass on a GPU: its compute and what it sends are slow while collectives run."""

    def __init__(self, gpu: Gpu, slowdown: float) -> None:
        self.pace, self.slowdown = gpu.kernels, slowdown


class Team(_Paced):
    """GPUs that do a collective together, which is slow while any of them computes."""

    def __init__(self, gpus: Sequence[Gpu]) -> None:
        self.gpus, first = gpus, gpus[0]
        self.slowdown = first.slowdown
        self.pace = _Pace(first.env, first.network)

    @contextmanager
    def communicating(self) -> Iterator[None]:
        """Count a collective as running on all of them."""
        self.pace.disturb(sum(1 for gpu in self.gpus if gpu.computing))
        for gpu in self.gpus:
            gpu.collectives.append(self.pace)
        with ExitStack() as all_gpus:
            for gpu in self.gpus:
                all_gpus.enter_context(gpu.communicating())
            yield
        for gpu in self.gpus:
            gpu.collectives.remove(self.pace)


def _ended(process: simpy.Process) -> Generator[simpy.Event, None, None]:
    if not process.processed:
        yield process
