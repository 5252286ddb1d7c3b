"""The event interpreter: every stream of every stage is a SimPy process that plays its tasks."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import simpy

from simulator.cost.plan import LinkKind
from simulator.cost.step_costs import WorkCost
from simulator.engine.network import Network
from simulator.schedule.graph import STREAMS, TaskGraph

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


class _CountingEnvironment(simpy.Environment):
    """A SimPy environment that counts the events it processes."""

    def __init__(self) -> None:
        super().__init__()
        self.events = 0

    def step(self) -> None:
        self.events += 1
        super().step()


def run_step(
    graph: TaskGraph,
    costs: Sequence[WorkCost],
    capacity: dict[LinkKind, float],
    slowdown: Sequence[float] | None = None,
) -> EngineRun:
    """Play one step and return when each task started and ended.

    `capacity` is the bytes/s of each kind of link of one rank. Ranks of a stage do the same at the
    same time, so that one stands for all and its links are loaded as if all were there.
    `slowdown[s]` multiplies the compute time of stage s (1 for a healthy stage).
    """
    return _Step(graph, costs, capacity, slowdown or [1.0] * graph.pp).run()


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
        self.env = _CountingEnvironment()
        links = {(s, kind): rate for s in range(graph.pp) for kind, rate in capacity.items()}
        self.network = Network(self.env, dict(links))
        count = len(graph)
        self.start, self.end = [0.0] * count, [0.0] * count
        self.finished = bytearray(count)
        self.waiting: dict[int, simpy.Event] = {}

    def run(self) -> EngineRun:
        lanes: list[list[int]] = [[] for _ in range(STREAMS * self.graph.pp)]
        for task, lane in enumerate(self.graph.stream):
            lanes[lane].append(task)
        for lane, tasks in enumerate(lanes):
            if tasks:
                self.env.process(self._play(lane // STREAMS, tasks))
        self.env.run()
        assert all(self.finished), "the step did not come to its end"
        return EngineRun(
            start=self.start,
            end=self.end,
            events=self.env.events,
            carried=dict(self.network.carried),
        )

    def _play(self, stage: int, tasks: list[int]) -> Generator[simpy.Event, None, None]:
        """Run the tasks of one stream, one after another."""
        env, graph, costs = self.env, self.graph, self.costs
        for task in tasks:
            for needed in (graph.first[task], graph.second[task]):
                if needed >= 0 and not self.finished[needed]:
                    yield self._end_of(needed)
            self.start[task] = env.now
            cost = costs[graph.work[task]]
            if cost.plans:
                yield from self._communicate(stage, cost)
            elif cost.seconds:
                yield env.timeout(cost.seconds * self.slowdown[stage])
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
        """Each phase of a collective: a fixed delay, then a flow on a link of this stage."""
        for plan in cost.plans:
            for phase in plan.phases:
                if phase.fixed:
                    yield self.env.timeout(phase.fixed)
                if phase.wire_bytes:
                    link: Link = (stage, phase.link)
                    yield self.network.transfer((link,), phase.wire_bytes, phase.rate)
