"""The event interpreter: every stream of every stage is a SimPy process that plays its tasks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import simpy
from simpy.core import EmptySchedule

from simulator.cost.plan import CommPhase, LinkKind
from simulator.cost.priced import WorkCost
from simulator.engine.gpu import Gpu, Interference
from simulator.engine.network import Network
from simulator.schedule.tasks import STREAMS, TaskGraph

Link = tuple[int, LinkKind]
"""One direction of the scale-up port or the NIC share of a stage's representative rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """What an event run yields: start and end of every task, and what the links carried."""

    start: Sequence[float]
    end: Sequence[float]
    events: int
    carried: dict[Link, float]
    """Bytes that each link carried in the step."""


def run_step(
    graph: TaskGraph,
    costs: Sequence[WorkCost],
    capacity: dict[LinkKind, float],
    slowdown: Sequence[float] | None = None,
    interference: Interference | None = None,
) -> EngineRun:
    """Play one step and return when each task started and ended.

    `capacity` is the bytes/s of each kind of link of one rank. Ranks of a stage do the same at the
    same time, so that one stands for all and its links are loaded as if all were there.
    `slowdown[s]` multiplies the compute time of stage s (1 for a healthy stage). With
    `interference` compute and communication of a stage slow each other.
    """
    step = _Step(graph, costs, capacity, slowdown or [1.0] * graph.pp)
    if interference is not None:
        step.interfere(interference)
    return step.run()


class _Step:
    """Owns the state of one run."""

    def __init__(
        self,
        graph: TaskGraph,
        costs: Sequence[WorkCost],
        capacity: dict[LinkKind, float],
        slowdown: Sequence[float],
    ) -> None:
        self.graph, self.costs, self.slowdown = graph, costs, slowdown
        self.env = simpy.Environment()
        links: dict[Hashable, float] = {
            (s, kind): rate for s in range(graph.pp) for kind, rate in capacity.items()
        }
        self.network = Network(self.env, links)
        self.private = _private_links(graph, costs)
        self.private_works = {
            work
            for work, lane in set(zip(graph.work, graph.stream, strict=True))
            if _links(lane, costs[work]) <= self.private
        }
        count = len(graph)
        self.start, self.end = [0.0] * count, [0.0] * count
        self.finished = bytearray(count)
        self.waiting: dict[int, simpy.Event] = {}
        self.interference: Interference | None = None
        self.gpus: list[Gpu] = []

    def interfere(self, interference: Interference) -> None:
        """Let compute and communication of each stage slow each other."""
        self.interference = interference
        self.gpus = [
            Gpu(self.env, self.network, interference.communication) for _ in range(self.graph.pp)
        ]

    def run(self) -> EngineRun:
        lanes: list[list[int]] = [[] for _ in range(STREAMS * self.graph.pp)]
        for task, lane in enumerate(self.graph.stream):
            lanes[lane].append(task)
        for lane, tasks in enumerate(lanes):
            if tasks:
                self.env.process(self._play(lane // STREAMS, tasks))
        events = self._run_to_the_end()
        assert all(self.finished), "the step did not come to its end"
        return EngineRun(
            start=self.start,
            end=self.end,
            events=events,
            carried=_carried(self.graph, self.costs),
        )

    def _run_to_the_end(self) -> int:
        """Process all events and return how many there were."""
        events = 0
        with suppress(EmptySchedule):
            while True:
                self.env.step()
                events += 1
        return events

    def _play(self, stage: int, tasks: list[int]) -> Generator[simpy.Event, None, None]:
        """Run the tasks of one stream, one after another."""
        env, graph, costs = self.env, self.graph, self.costs
        for task in tasks:
            for needed in (graph.first[task], graph.second[task]):
                if needed >= 0 and not self.finished[needed]:
                    yield self._end_of(needed)
            self.start[task] = env.now
            work = graph.work[task]
            cost = costs[work]
            if self.interference is not None:
                yield from self._beside_others(stage, work, self.interference)
            elif not cost.plans:
                if cost.seconds:
                    yield env.timeout(cost.seconds * self.slowdown[stage])
            elif work in self.private_works:
                yield env.timeout(cost.seconds)
            else:
                yield from self._communicate(stage, cost)
            self.end[task] = env.now
            self.finished[task] = 1
            waiting = self.waiting.pop(task, None)
            if waiting is not None:
                waiting.succeed()

    def _end_of(self, task: int) -> simpy.Event:
        event = self.waiting.get(task)
        if event is None:
            event = self.waiting[task] = self.env.event()
        return event

    def _communicate(self, stage: int, cost: WorkCost) -> Generator[simpy.Event, None, None]:
        """Each phase of a collective is a fixed delay, then a flow on a link of this stage.

        On a link that no other stream uses it is one delay.
        """
        for plan in cost.plans:
            for phase in plan.phases:
                link: Link = (stage, phase.link)
                if link in self.private:
                    yield self.env.timeout(phase.seconds)
                    continue
                if phase.fixed:
                    yield self.env.timeout(phase.fixed)
                if phase.wire_bytes:
                    yield from self.network.transfer((link,), phase.wire_bytes, phase.rate)

    def _beside_others(
        self, stage: int, work: int, interference: Interference
    ) -> Generator[simpy.Event, None, None]:
        """Run one task on a GPU whose compute and communication slow each other.

        Copies to and from host memory are made by engines of their own and slow nothing.
        """
        cost, gpu = self.costs[work], self.gpus[stage]
        if not cost.plans:
            if cost.seconds:
                yield from gpu.compute(
                    cost.seconds * self.slowdown[stage], interference.compute[work]
                )
        elif all(phase.link is LinkKind.HOST for plan in cost.plans for phase in plan.phases):
            yield from self._communicate(stage, cost)
        else:
            with gpu.communicating():
                for plan in cost.plans:
                    for phase in plan.phases:
                        yield from self._phase_on(gpu, stage, phase)

    def _phase_on(
        self, gpu: Gpu, stage: int, phase: CommPhase
    ) -> Generator[simpy.Event, None, None]:
        link: Link = (stage, phase.link)
        if link in self.private:
            yield from gpu.delay(phase.seconds)
            return
        if phase.fixed:
            yield from gpu.delay(phase.fixed)
        if phase.wire_bytes:
            yield from gpu.transfer((link,), phase.wire_bytes, phase.rate)


def _private_links(graph: TaskGraph, costs: Sequence[WorkCost]) -> set[Link]:
    """Return the links that only one stream uses, so that no two flows ever meet on them."""
    users: dict[Link, set[int]] = defaultdict(set)
    for work, lane in set(zip(graph.work, graph.stream, strict=True)):
        for link in _links(lane, costs[work]):
            users[link].add(lane)
    return {link for link, lanes in users.items() if len(lanes) == 1}


def _carried(graph: TaskGraph, costs: Sequence[WorkCost]) -> dict[Link, float]:
    """Return the bytes that each link carries in the step."""
    carried: dict[Link, float] = defaultdict(float)
    for (work, lane), runs in Counter(zip(graph.work, graph.stream, strict=True)).items():
        for plan in costs[work].plans:
            for phase in plan.phases:
                carried[lane // STREAMS, phase.link] += phase.wire_bytes * runs
    return dict(carried)


def _links(lane: int, cost: WorkCost) -> set[Link]:
    stage = lane // STREAMS
    return {(stage, phase.link) for plan in cost.plans for phase in plan.phases}
