"""One whole run as a SimPy process: it jumps from failure to failure, never step by step.

While the job runs, hazard passes at the rate of the nodes it runs on; when it has used up what was
drawn, something fails: work since the last safe checkpoint is lost, the failure is detected, lost
nodes are replaced, waited for or done without, and the job starts again.
"""

from __future__ import annotations

from collections.abc import Generator
from math import inf

import simpy

from planner.goodput.draws import Draws
from planner.goodput.rates import Hazard
from planner.goodput.shape import Cause, Level, Played, RunShape
from planner.goodput.stretch import Stop, Stretch

_Wait = Generator[simpy.Event, object, None]
_Spend = Generator[simpy.Event, object, bool]


def play_run(shape: RunShape, hazard: Hazard, draws: Draws) -> Played:
    """Return what becomes of one run."""
    env = simpy.Environment()
    run = _Run(env, shape, hazard, draws)
    env.run(until=env.process(run.process()))
    return Played(
        wall=env.now,
        seconds=run.seconds,
        failures=run.failures,
        saves=run.saves,
        events=run.events,
    )


class _Run:
    """The only owner of a run's state."""

    def __init__(
        self, env: simpy.Environment, shape: RunShape, hazard: Hazard, draws: Draws
    ) -> None:
        self.env, self.shape, self.hazard, self.draws = env, shape, hazard, draws
        self.seconds = dict.fromkeys(Cause, 0.0)
        self.failures = self.saves = self.events = 0
        self._level = shape.levels[0]
        self._healthy = self._level.nodes + shape.spares
        self._safe = 0.0
        self._hazard_left = draws.failure()
        self._awaited: simpy.Event | None = None
        self._next_maintenance = shape.maintenance_every

    def process(self) -> _Wait:
        """Train until all work is safe."""
        while self._safe < self.shape.work:
            failed = yield from self._train()
            if failed:
                yield from self._start_again()
            elif self._safe < self.shape.work:
                yield from self._planned_stop()

    def _train(self) -> _Spend:
        """Train to the end, a planned stop, a wish to grow or a failure; return if it failed."""
        shape, level = self.shape, self._level
        stretch = Stretch(
            left=shape.work - self._safe,
            interval=shape.interval,
            slowdown=level.slowdown,
            stall=shape.stall,
            write=shape.write,
        )
        begin, stop = self.env.now, stretch.end
        if self._next_maintenance < inf:
            stop = min(stop, self._planned(stretch, begin), key=_moment)
        failed = yield from self._spend(stop.at, grows=True)
        if not failed and self._best_level() is not level:
            stop = min(stop, stretch.next_checkpoint(self.env.now - begin), key=_moment)
            failed = yield from self._spend(begin + stop.at - self.env.now)
        elapsed = self.env.now - begin
        self._book(stretch, elapsed, stretch.cut(elapsed) if failed else stop)
        return failed

    def _planned(self, stretch: Stretch, begin: float) -> Stop:
        """Return where the next maintenance ends a stretch that begins at `begin`."""
        due = self._next_maintenance - begin
        if self.shape.saves_first:
            return stretch.own_checkpoint(due)
        return stretch.next_checkpoint(due)

    def _book(self, stretch: Stretch, elapsed: float, stop: Stop) -> None:
        """Say what `elapsed` seconds of a stretch were good for."""
        slower = stop.work * (stretch.slowdown - 1.0)
        self._safe = self.shape.work if stop == stretch.end else self._safe + stop.work
        self.saves += stop.saves
        self.seconds[Cause.USEFUL] += stop.work
        self.seconds[Cause.CHECKPOINT] += stop.waited
        self.seconds[Cause.DEGRADED] += slower
        self.seconds[Cause.LOST] += max(0.0, elapsed - stop.work - stop.waited - slower)

    def _start_again(self) -> _Wait:
        """Detect a failure, find nodes and start, as often as that fails."""
        shape, failed = self.shape, True
        detect = (Cause.DETECTION, shape.detection)
        while failed:
            if self._level is shape.levels[0] and self._best_level() is self._level:
                # Nothing to decide between the two: one event for both.
                failed = yield from self._spend_on(detect, (Cause.RESTART, shape.restart))
                continue
            failed = yield from self._spend_on(detect)
            if not failed:
                failed = yield from self._start()

    def _planned_stop(self) -> _Wait:
        """Stop for maintenance if it is due, and start again, also to grow."""
        if self._next_maintenance <= self.env.now:
            self.seconds[Cause.MAINTENANCE] += self.shape.maintenance
            yield self._timeout(self.shape.maintenance)
            self._next_maintenance = self.env.now + self.shape.maintenance_every
        failed = yield from self._start()
        if failed:
            yield from self._start_again()

    def _start(self) -> _Spend:
        """Take the nodes there are, wait where they are too few, and start; return if it failed."""
        while (level := self._best_level()) is None:
            begin = self.env.now
            yield self._return_of_a_node()
            self.seconds[Cause.WAITING] += self.env.now - begin
        self._level = level
        return (yield from self._spend_on((Cause.RESTART, self.shape.restart)))

    def _spend_on(self, *parts: tuple[Cause, float]) -> _Spend:
        """Let the parts pass one after another; return whether a failure cut them short."""
        begin = self.env.now
        failed = yield from self._spend(sum(seconds for _, seconds in parts))
        left = self.env.now - begin
        for cause, seconds in parts:
            self.seconds[cause] += min(left, seconds)
            left -= min(left, seconds)
        return failed

    def _spend(self, seconds: float, *, grows: bool = False) -> _Spend:
        """Let time pass on the nodes of the job; return whether a failure cut it short.

        With `grows` it also ends when the job could run on more nodes than it does.
        """
        share = self._level.nodes / self.shape.levels[0].nodes
        rate, end = self.hazard.per_second * share, self.env.now + seconds
        while self.env.now < end:
            begin = self.env.now
            left = self._hazard_left / rate if rate else inf
            fails = left < end - begin
            pause = self._timeout(left if fails else end - begin)
            if grows and self._level is not self.shape.levels[0]:
                yield pause | self._return_of_a_node()
            else:
                yield pause
            if not pause.processed:
                self._hazard_left -= (self.env.now - begin) * rate
                if self._best_level() is not self._level:
                    return False
                continue
            if fails:
                self._fail()
                return True
            self._hazard_left -= (end - begin) * rate
            return False
        return False

    def _fail(self) -> None:
        self.failures += 1
        self._hazard_left = self.draws.failure()
        if self.draws.loses_node(self.hazard.loses_node):
            self._healthy -= 1
            repaired = self._timeout(self.shape.repair * self.draws.repair())
            assert repaired.callbacks is not None, "not processed yet"
            repaired.callbacks.append(self._come_back)

    def _come_back(self, _: simpy.Event) -> None:
        self._healthy += 1
        if self._awaited is not None:
            self._awaited.succeed()
            self._awaited = None

    def _return_of_a_node(self) -> simpy.Event:
        self._awaited = self._awaited or self.env.event()
        return self._awaited

    def _best_level(self) -> Level | None:
        """Return the largest size that the healthy nodes allow, if any."""
        return next((level for level in self.shape.levels if level.nodes <= self._healthy), None)

    def _timeout(self, seconds: float) -> simpy.Timeout:
        self.events += 1
        return self.env.timeout(seconds)


def _moment(stop: Stop) -> float:
    return stop.at
