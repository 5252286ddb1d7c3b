"""Checks of a schedule before it is trusted: completeness, deadlock, activations in flight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from simulator.parallel.layout import ScheduleName
from simulator.parallel.memory import InFlight
from simulator.schedule.action import Action, ActionKind, Schedule, StageActions
from simulator.schedule.registry import build_schedule


class ScheduleError(AssertionError):
    """A schedule of ours is wrong: incomplete or deadlocked."""


def dependency(action: Action, pp: int, vpp: int) -> Action | None:
    """Return the action that must be over before `action` may start, or None.

    A forward pass needs the forward pass of the virtual stage before; a backward pass that of the
    virtual stage behind, and on the last virtual stage its own forward pass.
    """
    stage, kind, micro_batch, chunk = action
    place = chunk * pp + stage
    if kind is ActionKind.FORWARD:
        return Action((place - 1) % pp, kind, micro_batch, (place - 1) // pp) if place else None
    if place == pp * vpp - 1:
        return Action(stage, ActionKind.FORWARD, micro_batch, chunk)
    return Action((place + 1) % pp, kind, micro_batch, (place + 1) // pp)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassNumbers:
    """Numbers the passes of a step from 0, so that what is known of them can stand in lists."""

    pp: int
    vpp: int
    micro_batches: int

    @property
    def count(self) -> int:
        """Passes in all."""
        return 2 * self.pp * self.vpp * self.micro_batches

    def of(self, action: Action) -> int:
        """Return the number of a pass: forward passes by virtual stage, then backward passes."""
        stage, kind, micro_batch, chunk = action
        place = chunk * self.pp + stage
        if kind is ActionKind.BACKWARD:
            place += self.pp * self.vpp
        return place * self.micro_batches + micro_batch

    def needed(self, action: Action) -> int:
        """Return the number of the pass that `dependency` names, or -1 for none."""
        stage, kind, micro_batch, chunk = action
        place, last = chunk * self.pp + stage, self.pp * self.vpp - 1
        if kind is ActionKind.FORWARD:
            return (place - 1) * self.micro_batches + micro_batch if place else -1
        behind = last if place == last else last + 2 + place
        return behind * self.micro_batches + micro_batch


def in_dependency_order(schedule: Schedule, vpp: int) -> Iterator[Action]:
    """Yield all actions so that each comes after what it depends on and after its predecessor.

    Raises:
        ScheduleError: the stages wait for each other for ever.
    """
    remaining = sum(map(len, schedule))
    numbers = PassNumbers(
        pp=len(schedule),
        vpp=vpp,
        micro_batches=1 + max(action.micro_batch for actions in schedule for action in actions),
    )
    done = bytearray(numbers.count)
    position = [0] * len(schedule)
    while remaining:
        before = remaining
        for stage, actions in enumerate(schedule):
            start = at = position[stage]
            while at < len(actions):
                needed = numbers.needed(actions[at])
                if needed >= 0 and not done[needed]:
                    break
                done[numbers.of(actions[at])] = 1
                yield actions[at]
                at += 1
            position[stage] = at
            remaining -= at - start
        if remaining == before:
            stuck = [str(a[i]) for a, i in zip(schedule, position, strict=True) if i < len(a)]
            raise ScheduleError(f"deadlock at {', '.join(stuck)}")


def check_complete(schedule: Schedule, vpp: int, micro_batches: int) -> None:
    """Raise `ScheduleError` unless each stage runs every pass exactly once."""
    for stage, actions in enumerate(schedule):
        expected = {
            Action(stage, kind, i, c)
            for kind in ActionKind
            for i in range(micro_batches)
            for c in range(vpp)
        }
        if set(actions) != expected or len(actions) != len(expected):
            raise ScheduleError(f"stage {stage}: {len(actions)} actions, {len(expected)} expected")


def in_flight(name: ScheduleName, pp: int, vpp: int, micro_batches: int) -> tuple[InFlight, ...]:
    """Return, for each stage, the activations alive when most are (chunks are of like size).

    Past the warm-up the one-forward-one-backward schedules hold a constant number, so that
    2 pp micro-batches (a group more than any warm-up needs) stand for any larger number.
    """
    enough = micro_batches if name is ScheduleName.GPIPE else min(micro_batches, 2 * pp)
    return _in_flight(name, pp, vpp, enough)


@lru_cache(maxsize=1024)
def _in_flight(name: ScheduleName, pp: int, vpp: int, micro_batches: int) -> tuple[InFlight, ...]:
    return tuple(_worst(actions) for actions in build_schedule(name, pp, vpp, micro_batches))


def _worst(actions: StageActions) -> InFlight:
    alive: dict[int, int] = {}
    worst: dict[int, int] = {}
    total = most = 0
    moment = actions[0]
    for action in actions:
        step = 1 if action.kind is ActionKind.FORWARD else -1
        alive[action.chunk] = alive.get(action.chunk, 0) + step
        total += step
        if total > most:
            most, worst, moment = total, dict(alive), action
    text = f"backward pass after forward of micro-batch {moment.micro_batch}, chunk {moment.chunk}"
    return InFlight(by_chunk=worst, moment=text)
