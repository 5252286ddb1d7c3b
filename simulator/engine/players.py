"""How one work is played: compute as a delay, a collective phase by phase, alone or together."""

from __future__ import annotations

from collections.abc import Generator, Hashable

import simpy

from simulator.cost.plan import LinkKind
from simulator.cost.priced import WorkCost
from simulator.engine.gpu import Gpu, Interference, Kernel, Team
from simulator.engine.network import Network
from simulator.engine.passing import Undisturbed, pass_through
from simulator.engine.routes import Routes, Stop

Process = Generator[simpy.Event, None, None]


class Player:
    """Plays works of any stage of any replica: on GPUs where `interference` slows them."""

    def __init__(
        self,
        env: simpy.Environment,
        network: Network,
        routes: Routes,
        interference: Interference | None,
    ) -> None:
        self.env, self.network, self.routes = env, network, routes
        self.costs, self.pp = routes.costs, routes.graph.pp
        self.interference = interference
        self.gpus: list[Gpu] = []
        """One of each stage of each replica, in the order of their rows, where they matter."""
        if interference is not None:
            self.gpus = [
                Gpu(env, network, interference.communication)
                for _ in range(len(self.costs) * self.pp)
            ]

    def is_sure(self, work: int, replica: int, stage: int, size: int = 1) -> bool:
        """Return whether a work of `size` replicas takes as long as alone, whatever others do."""
        cost = self.costs[replica][work]
        if self.gpus and cost.seconds and not _copies(cost):
            return False
        return not (cost.plans or cost.bursts) or not self.routes.of(work, replica, stage, size)

    def shared_by(self, work: int, replica: int, size: int) -> frozenset[Hashable]:
        """Return what a work of `size` replicas shares with others: links, and GPUs that slow."""
        stage = self.routes.graph.works[work].stage
        links = self.routes.links_of(work, replica, stage, size)
        if not self.gpus or self.is_sure(work, replica, stage, size):
            return links
        first = replica * self.pp + stage
        return links.union(self.gpus[first : first + size * self.pp : self.pp])

    def compute(self, work: int, row: int, seconds: float) -> Process:
        """Run a kernel that takes `seconds` alone on a GPU that collectives slow."""
        assert self.interference is not None, "compute that nothing slows is a delay"
        yield from self.gpus[row].compute(seconds, self.interference.compute[work])

    def sends(self, work: int, replica: int, stage: int) -> bool:
        """Return whether a pass sends over links that others load too."""
        bursts = self.costs[replica][work].bursts
        return bool(bursts) and bool(self.routes.of(work, replica, stage, 1))

    def passing(self, work: int, replica: int, stage: int, factor: float) -> Process:
        """Run a pass that sends, `factor` times as long as its cost says."""
        cost, stops = self.costs[replica][work], self.routes.of(work, replica, stage, 1)
        turns = min(cost.turns, self.routes.turns)
        if self.interference is None:
            pace = Undisturbed(self.env, self.network)
            yield from pass_through(pace, cost, stops, turns=turns, factor=factor)
            return
        gpu = self.gpus[replica * self.pp + stage]
        kernel = Kernel(gpu, self.interference.compute[work])
        with gpu.busy():
            yield from pass_through(kernel, cost, stops, turns=turns, factor=factor)

    def collective(self, work: int, replica: int, stage: int, size: int) -> Process:
        """Run a collective of `size` replicas, from `replica` on.

        Copies to and from host memory are made by engines of their own and slow nothing.
        """
        cost = self.costs[replica][work]
        stops = self.routes.of(work, replica, stage, size)
        if self.gpus and not _copies(cost):
            first = replica * self.pp + stage
            rows = range(first, first + size * self.pp, self.pp)
            team = self.gpus[first] if size == 1 else Team([self.gpus[row] for row in rows])
            with team.communicating():
                for stop in stops or self.routes.unmet(cost):
                    yield from _phase_on(team, stop)
        elif not stops:
            yield self.env.timeout(cost.seconds)
        else:
            for phase, links, weights in stops:
                if not links:
                    yield self.env.timeout(phase.seconds)
                    continue
                if phase.fixed:
                    yield self.env.timeout(phase.fixed)
                if phase.wire_bytes:
                    yield from self.network.transfer(
                        links, phase.wire_bytes, phase.rate, weights=weights
                    )


def _copies(cost: WorkCost) -> bool:
    phases = [phase for plan in cost.plans for phase in plan.phases]
    return bool(phases) and all(phase.link is LinkKind.HOST for phase in phases)


def _phase_on(gpus: Gpu | Team, stop: Stop) -> Process:
    """A phase is a fixed delay, then a flow; where it meets no other flow it is one delay."""
    phase, links, weights = stop
    if not links:
        yield from gpus.delay(phase.seconds)
        return
    if phase.fixed:
        yield from gpus.delay(phase.fixed)
    if phase.wire_bytes:
        yield from gpus.transfer(links, phase.wire_bytes, phase.rate, weights)
