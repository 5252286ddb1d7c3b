"""The event interpreter: tasks are timed ahead as far as nothing can lengthen them, else played.

A step is a recursion: a task starts when its stream is free and what it waits for has ended. While
all of that is known and the task takes a known time, its end is known too, before the clock gets
there. Only tasks that others can lengthen are SimPy processes: flows on links that others load,
and all that runs on a GPU whose compute and communication slow each other.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress

import simpy
from simpy.core import EmptySchedule

from simulator.cost.plan import LinkKind
from simulator.cost.priced import WorkCost
from simulator.engine.engine_run import EngineRun
from simulator.engine.fabric import Fabric, play_background
from simulator.engine.first_meeting import first_meeting, times_alone
from simulator.engine.gpu import Interference
from simulator.engine.lanes import Lane, lanes_of
from simulator.engine.lookahead import Key, Lookahead
from simulator.engine.meetings import Meetings, meeting_sizes
from simulator.engine.network import Network
from simulator.engine.players import Player, Process
from simulator.engine.record import Recorder
from simulator.engine.replicas import Replicas
from simulator.engine.routes import Link, Routes
from simulator.schedule.tasks import TaskGraph

__all__ = ["EngineRun", "Link", "run_step"]

_UNKNOWN = math.inf
"""The end of a task that is not known yet."""


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
    if replicas is None:
        replicas = Replicas(count=1, slowdown=(slowdown or (1.0,) * graph.pp,))
    fabric = fabric or Fabric()
    return _Step(graph, costs, capacity, interference, fabric=fabric, replicas=replicas).run()


class _Step:
    """Owns the state of one run."""

    def __init__(
        self,
        graph: TaskGraph,
        costs: Sequence[WorkCost],
        capacity: Mapping[LinkKind, float],
        interference: Interference | None,
        *,
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
        self.player = Player(self.env, self.network, self.routes, interference)
        self.meetings = Meetings(replicas.count * graph.pp)
        self.lanes = lanes_of(graph, replicas, self.sizes, self.player)
        tasks = len(graph)
        self.starts = [[0.0] * tasks for _ in range(replicas.count)]
        self.ends = [[*[_UNKNOWN] * tasks, 0.0] for _ in range(replicas.count)]
        """One entry more, always 0, stands for "waits for nothing"."""
        self.waiting: list[dict[int, list[Lane]]] = [{} for _ in range(replicas.count)]
        """[replica] the streams that wait until the end of a task is known."""
        self.played = 0
        self.lookahead: Lookahead | None = None

    def run(self) -> EngineRun:
        for traffic in self.fabric.background:
            self.env.process(play_background(self.env, self.network, traffic, self._is_over))
        self._look_ahead()
        self._advance(list(self.lanes))
        events = self._run_to_the_end()
        assert all(lane.is_over for lane in self.lanes), "the step did not come to its end"
        return self._result(events)

    def _look_ahead(self) -> None:
        """Time what surely meets nothing, where all that can slow a task down is another task.

        Where flows are to be recorded all are played.
        """
        fabric, shared = self.fabric, self._shared()
        if not shared or fabric.background or fabric.record or self.routes.hinders_any():
            return
        if self.replicas.count == 1 and self._run_to_first_meeting(shared) == math.inf:
            return
        self.lookahead = Lookahead(self.graph, self.lanes, shared, self.sizes, self.ends)

    def _shared(self) -> dict[Key, frozenset[Hashable]]:
        """Return what each work that others can lengthen shares with them."""
        size_of = dict(zip(self.graph.work, self.sizes, strict=True))
        found = {
            (work, replica): self.player.shared_by(work, replica, size)
            for work, size in size_of.items()
            for replica in range(0, self.replicas.count, size)
        }
        return found if any(found.values()) else {}

    def _run_to_first_meeting(self, shared: Mapping[Key, frozenset[Hashable]]) -> float:
        """Time all tasks as if none met another one, and take back what may be otherwise.

        Return when the first two meet. Until two tasks are on a link, or on a GPU that slows one of
        them, at the same time each takes as long as alone. So this is right until then: what has
        ended by that moment is kept.
        """
        ends, starts = times_alone(self.graph, self.lanes)
        of_works = {work: things for (work, _), things in shared.items()}
        met = first_meeting(self.graph, of_works, starts, ends[:-1])
        self.starts[0], self.ends[0] = starts.tolist(), ends.tolist()
        for lane in self.lanes:
            lane.take_back(self.ends[0], met)
        return met

    def _advance(self, todo: list[Lane]) -> None:
        """Time what can be known of some streams, and of all that can go on then."""
        while todo:
            todo += self._run_ahead(todo.pop())

    def _run_ahead(self, lane: Lane) -> list[Lane]:
        """Time the tasks of a stream up to one that has to be played, or waits for what is unknown.

        Return the streams that can go on now.
        """
        first, second = self.graph.first, self.graph.second
        starts, ends = self.starts[lane.replica], self.ends[lane.replica]
        waiting, woken = self.waiting[lane.replica], list[Lane]()
        free = lane.free
        for place in range(lane.place, len(lane.tasks)):
            task = lane.tasks[place]
            one, two = ends[first[task]], ends[second[task]]
            if max(one, two) == _UNKNOWN:
                needed = first[task] if one == _UNKNOWN else second[task]
                waiting.setdefault(needed, []).append(lane)
                break
            free = max(free, one, two)
            starts[task] = free
            delay = lane.delays[place]
            if delay is None:
                lane.place, lane.free = place, free
                return woken + self._start(lane, task)
            ends[task] = free = free + delay
            if task in waiting:
                woken += waiting.pop(task)
        else:
            place = len(lane.tasks)
        lane.place, lane.free = place, free
        return woken

    def _start(self, lane: Lane, task: int) -> list[Lane]:
        """Start a task that others may lengthen, or that replicas meet at once all have come.

        Return the streams that can go on now.
        """
        size, work = self.sizes[task], self.graph.work[task]
        lanes = [lane] if size == 1 else self.meetings.arrive(lane, task, size)
        if not lanes:
            return []
        start, leader = max(each.free for each in lanes), lanes[0]
        sure = size > 1 and self.player.is_sure(work, leader.replica, leader.stage, size)
        if sure or (self.lookahead is not None and self.lookahead.meets_none(lanes, start)):
            return self._finish(lanes, task, start + leader.alone[leader.place])
        self.played += 1
        self.env.process(self._play(lanes, task, start))
        return []

    def _play(self, lanes: list[Lane], task: int, start: float) -> Process:
        """Play a task of some replicas, one or all that meet, and go on."""
        if start > self.env.now:
            yield self.env.timeout(start - self.env.now)
        work, leader = self.graph.work[task], lanes[0]
        replica, stage = leader.replica, leader.stage
        if self.costs[replica][work].plans:
            yield from self.player.collective(work, replica, stage, len(lanes))
        elif self.player.sends(work, replica, stage):
            factor = self.replicas.factor(replica, stage, task)
            yield from self.player.passing(work, replica, stage, factor)
        else:
            assert len(lanes) == 1, "replicas meet for collectives and joins, not for compute"
            yield from self.player.compute(work, leader.row, leader.alone[leader.place])
        self._advance(self._finish(lanes, task, self.env.now))

    def _finish(self, lanes: list[Lane], task: int, end: float) -> list[Lane]:
        """Note the end of a task of some streams; return those that can go on now."""
        woken = list(lanes)
        for lane in lanes:
            self.ends[lane.replica][task] = lane.free = end
            lane.place += 1
            woken += self.waiting[lane.replica].pop(task, ())
        return woken

    def _run_to_the_end(self) -> int:
        """Process all events and return how many there were."""
        events = 0
        with suppress(EmptySchedule):
            while True:
                self.env.step()
                events += 1
        return events

    def _is_over(self) -> bool:
        """Return whether the clock has come to the end of the last task."""
        known = all(lane.is_over for lane in self.lanes)
        return known and self.env.now >= self._end

    @property
    def _end(self) -> float:
        return max(lane.free for lane in self.lanes)

    def _result(self, events: int) -> EngineRun:
        pp, waited = self.graph.pp, self.meetings.waited
        if self.env.now < self._end:
            # What others send until then is recorded too.
            self.env.run(until=self._end)
        self.network.settle()
        return EngineRun(
            starts=self.starts,
            ends=[ends[:-1] for ends in self.ends],
            events=events,
            played=self.played,
            carried=self.routes.carried,
            waited=[waited[row : row + pp] for row in range(0, len(waited), pp)],
            utilisation=self.recorder.utilisation() if self.recorder is not None else {},
        )
