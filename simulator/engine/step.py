"""The event interpreter: every stream of every stage is a SimPy process that plays its tasks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import simpy
from simpy.core import EmptySchedule

from simulator.cost.plan import LinkKind
from simulator.cost.priced import WorkCost
from simulator.engine.fabric import Fabric, play_background
from simulator.engine.gpu import Interference
from simulator.engine.network import Network
from simulator.engine.players import Player, Process
from simulator.engine.record import Recorder, Utilisation
from simulator.engine.replicas import Meetings, Replicas, lane_tasks, meeting_sizes
from simulator.engine.routes import Link, Routes
from simulator.schedule.tasks import STREAMS, TaskGraph

__all__ = ["EngineRun", "Link", "run_step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """What an event run yields: start and end of every task, and what the links carried."""

    starts: Sequence[Sequence[float]]
    """[replica][task] seconds; a collective starts when its own replica comes to it."""
    ends: Sequence[Sequence[float]]
    """[replica][task] seconds."""
    events: int
    carried: Mapping[Link, float]
    """Bytes that each link carried in the step."""
    waited: Sequence[Sequence[float]]
    """[replica][stage] seconds, all meetings together, until the last other replica had come."""
    utilisation: Mapping[Hashable, Utilisation] = field(default_factory=dict)
    """What each link carried over time, background included, where the fabric was recorded."""

    @property
    def pace(self) -> int:
        """The replica that the others waited for: the one that has waited least."""
        totals = [sum(stages) for stages in self.waited]
        return totals.index(min(totals))

    @property
    def start(self) -> Sequence[float]:
        """When each task of the replica that sets the pace started, seconds."""
        return self.starts[self.pace]

    @property
    def end(self) -> Sequence[float]:
        """When each task of the replica that sets the pace ended, seconds."""
        return self.ends[self.pace]

    @property
    def step_time(self) -> float:
        """End of the last task of any replica, seconds."""
        return max(max(ends) for ends in self.ends)


def run_step(
    graph: TaskGraph,
    costs: Sequence[WorkCost],
    capacity: Mapping[LinkKind, float],
    slowdown: Sequence[float] | None = None,
    interference: Interference | None = None,
    *,
    fabric: Fabric | None = None,
    replicas: Replicas | None = None,
) -> EngineRun:
    """Play one step and return when each task started and ended.

    `capacity` is the bytes/s of each kind of link of one rank, `fabric` the network behind them.
    Ranks of a stage do the same at the same time, so that one stands for all and its links are
    loaded as if all were there. `slowdown[s]` multiplies the compute time of stage s (1 for a
    healthy stage). With `interference` compute and communication of a stage slow each other.
    With `replicas`, which have slowdowns of their own, each replica is played for itself.
    """
    assert slowdown is None or replicas is None, "replicas have slowdowns of their own"
    alone = Replicas(count=1, slowdown=(slowdown or (1.0,) * graph.pp,))
    return _Step(graph, costs, capacity, fabric or Fabric(), replicas or alone).run(interference)


class _Step:
    """Owns the state of one run."""

    def __init__(
        self,
        graph: TaskGraph,
        costs: Sequence[WorkCost],
        capacity: Mapping[LinkKind, float],
        fabric: Fabric,
        replicas: Replicas,
    ) -> None:
        self.graph, self.fabric, self.replicas = graph, fabric, replicas
        self.costs = replicas.costs or [costs] * replicas.count
        self.sizes = meeting_sizes(graph, replicas)
        links = replicas.links or [capacity] * (replicas.count * graph.pp)
        self.routes = Routes(graph, self.costs, self.sizes, links, fabric)
        self.env = simpy.Environment()
        self.recorder = Recorder() if fabric.record else None
        self.network = Network(self.env, self.routes.capacity, self.recorder)
        self.meetings = Meetings(self.env, replicas.count * graph.pp)
        tasks = len(graph)
        self.starts = [[0.0] * tasks for _ in range(replicas.count)]
        self.ends = [[0.0] * tasks for _ in range(replicas.count)]
        self.finished = [bytearray(tasks) for _ in range(replicas.count)]
        self.playing = 0
        """Streams that have not come to their end."""

    def run(self, interference: Interference | None) -> EngineRun:
        player = Player(self.env, self.network, self.routes, self.costs, self.graph.pp)
        if interference is not None:
            player.interfere(interference)
        lanes = lane_tasks(self.graph)
        for replica in range(self.replicas.count):
            waiting: dict[int, simpy.Event] = {}
            for lane, tasks in lanes.items():
                process = self._play(player, replica, lane // STREAMS, tasks, waiting)
                self.env.process(process)
        self.playing = self.replicas.count * len(lanes)
        for traffic in self.fabric.background:
            self.env.process(
                play_background(self.env, self.network, traffic, lambda: not self.playing)
            )
        events = self._run_to_the_end()
        assert all(all(finished) for finished in self.finished), "the step did not come to its end"
        return self._result(events)

    def _run_to_the_end(self) -> int:
        """Process all events and return how many there were."""
        events = 0
        with suppress(EmptySchedule):
            while True:
                self.env.step()
                events += 1
        return events

    def _result(self, events: int) -> EngineRun:
        pp, waited = self.graph.pp, self.meetings.waited
        self.network.settle()
        return EngineRun(
            starts=self.starts,
            ends=self.ends,
            events=events,
            carried=self.routes.carried,
            waited=[waited[row : row + pp] for row in range(0, len(waited), pp)],
            utilisation=self.recorder.utilisation() if self.recorder is not None else {},
        )

    def _play(
        self,
        player: Player,
        replica: int,
        stage: int,
        tasks: list[int],
        waiting: dict[int, simpy.Event],
    ) -> Process:
        """Run the tasks of one stream of a replica, one after another."""
        env, first, second = self.env, self.graph.first, self.graph.second
        start, end, finished = self.starts[replica], self.ends[replica], self.finished[replica]
        delays = self._delays(player, replica, stage, tasks)
        for task, delay in zip(tasks, delays, strict=True):
            for needed in (first[task], second[task]):
                if needed >= 0 and not finished[needed]:
                    event = waiting.get(needed)
                    if event is None:
                        event = waiting[needed] = env.event()
                    yield event
            start[task] = env.now
            if delay is None:
                yield from self._work(player, replica, stage, task)
            elif delay:
                yield env.timeout(delay)
            end[task] = env.now
            finished[task] = 1
            event = waiting.pop(task, None)
            if event is not None:
                event.succeed()
        self.playing -= 1

    def _delays(
        self, player: Player, replica: int, stage: int, tasks: list[int]
    ) -> list[float | None]:
        """Return the seconds of each task of a stream, None where others can lengthen it."""
        if player.gpus:
            return [None] * len(tasks)
        works, sizes, costs = self.graph.work, self.sizes, self.costs[replica]
        slowdown, jitter = self.replicas.slowdown[replica][stage], self.replicas.jitter
        found: dict[int, float | None] = {}
        for work in {works[task] for task in tasks if sizes[task] == 1}:
            if player.sends(work, replica, stage):
                found[work] = None
            elif not costs[work].plans:
                found[work] = costs[work].seconds * slowdown
            else:
                met = self.routes.of(work, replica, stage, 1)
                found[work] = None if met else costs[work].seconds
        delays = [found[works[task]] if sizes[task] == 1 else None for task in tasks]
        if jitter is None:
            return delays
        factors = jitter[replica].tolist()
        return [
            delay if delay is None or costs[works[task]].plans else delay * factors[task]
            for task, delay in zip(tasks, delays, strict=True)
        ]

    def _work(self, player: Player, replica: int, stage: int, task: int) -> Process:
        """Run one task that others can lengthen."""
        work = self.graph.work[task]
        cost = self.costs[replica][work]
        if self.sizes[task] > 1:
            yield from self._meet(player, replica, stage, task)
        elif cost.plans:
            yield from player.collective(work, replica, stage, 1)
        elif player.sends(work, replica, stage):
            factor = self.replicas.factor(replica, stage, task)
            yield from player.passing(work, replica, stage, factor)
        elif cost.seconds:
            seconds = cost.seconds * self.replicas.factor(replica, stage, task)
            yield from player.compute(work, replica * self.graph.pp + stage, seconds)

    def _meet(self, player: Player, replica: int, stage: int, task: int) -> Process:
        """Wait for all replicas of a meeting; the last one to come runs what they do together."""
        size, work = self.sizes[task], self.graph.work[task]
        first = replica - replica % size
        row = replica * self.graph.pp + stage
        meeting, is_last = self.meetings.arrive(row, task, first, size)
        if not is_last:
            yield meeting.over
            return
        cost = self.costs[first][work]
        if cost.plans:
            yield from player.collective(work, first, stage, size)
        else:
            assert not cost.seconds, "replicas meet for collectives and joins, not for compute"
        meeting.over.succeed()
