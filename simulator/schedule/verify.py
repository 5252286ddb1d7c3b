"""Checks of a schedule before it is trusted: completeness and deadlock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from simulator.parallel.placement import NO_PLACE, PipelineShape, Placement, pipeline_of
from simulator.schedule.action import Action, ActionKind, Schedule, StageActions

_WHOLE = [ActionKind.FORWARD, ActionKind.BACKWARD]
_SPLIT = [ActionKind.FORWARD, ActionKind.BACKWARD_INPUT, ActionKind.BACKWARD_WEIGHT]


class ScheduleError(AssertionError):
    """A schedule of ours is wrong: incomplete or deadlocked."""

    def __init__(self, message: str, stuck: tuple[Action, ...] = ()) -> None:
        super().__init__(message)
        self.stuck = stuck
        """The next action of each stage that waits for ever."""


def dependency(
    action: Action, pp: int, vpp: int, placement: Placement = Placement.LOOP
) -> Action | None:
    """Return the action that must be over before `action` may start, or None.

    A forward pass needs the forward pass of the place before; a backward pass, whole or of the
    input alone, that of the place behind, and on the last place its own forward pass; a weight
    gradient its own input gradient. Of a backward pass that is split the input part is named.
    """
    shape = pipeline_of(pp, vpp, placement)
    stage, kind, micro_batch, chunk = action
    place = shape.place(stage, chunk)
    if kind is ActionKind.BACKWARD_WEIGHT:
        return Action(stage, ActionKind.BACKWARD_INPUT, micro_batch, chunk)
    forward = kind is ActionKind.FORWARD
    needed = shape.before(place) if forward else shape.behind(place)
    if needed == NO_PLACE:
        return None if forward else Action(stage, ActionKind.FORWARD, micro_batch, chunk)
    return Action(shape.stage(needed), kind, micro_batch, needed // pp)


class PassNumbers:
    """Numbers the passes of a step from 0, so that what is known of them can stand in lists.

    Forward passes come first, by place; then backward passes, whole or of the input, which yield
    the same; then weight gradients.
    """

    def __init__(self, shape: PipelineShape, micro_batches: int) -> None:
        places = shape.places
        self.count = 3 * places * micro_batches
        self.micro_batches = micro_batches
        self.place = [shape.places_of(stage) for stage in range(shape.pp)]
        before = [shape.before(p) for p in range(places)]
        behind = [shape.behind(p) for p in range(places)]
        back = [p if b == NO_PLACE else places + b for p, b in enumerate(behind)]
        own = range(places, 2 * places)
        self._needed = {
            ActionKind.FORWARD: before,
            ActionKind.BACKWARD: back,
            ActionKind.BACKWARD_INPUT: back,
            ActionKind.BACKWARD_WEIGHT: own,
        }
        self._own = {
            ActionKind.FORWARD: 0,
            ActionKind.BACKWARD: places,
            ActionKind.BACKWARD_INPUT: places,
            ActionKind.BACKWARD_WEIGHT: 2 * places,
        }

    def of_first(self, stage: int, kind: ActionKind, chunk: int) -> tuple[int, int]:
        """Return the number of the pass of micro-batch 0, and of what it needs, or -1 for nothing.

        Those of micro-batch i are i more.
        """
        place = self.place[stage][chunk]
        own, needed = self._own[kind] + place, self._needed[kind][place]
        return own * self.micro_batches, needed * self.micro_batches if needed >= 0 else -1


def in_dependency_order(
    schedule: Schedule, vpp: int, placement: Placement = Placement.LOOP
) -> list[Action]:
    """Return all actions so that each comes after what it depends on and after its predecessor.

    Raises:
        ScheduleError: the stages wait for each other for ever.
    """
    shape = pipeline_of(len(schedule), vpp, placement)
    most = 1 + max(action.micro_batch for actions in schedule for action in actions)
    numbers = PassNumbers(shape, most)
    done = bytearray(numbers.count)
    found: list[Action] = []

    def run(stage: int, start: int) -> int:
        actions = schedule[stage]
        for at in range(start, len(actions)):
            _, kind, micro_batch, chunk = actions[at]
            own, needed = numbers.of_first(stage, kind, chunk)
            if needed >= 0 and not done[needed + micro_batch]:
                return at
            done[own + micro_batch] = 1
            found.append(actions[at])
        return len(actions)

    run_in_turn(schedule, run)
    return found


def run_in_turn(schedule: Schedule, run: Callable[[int, int], int]) -> None:
    """Let all stages run their actions, each in turn as far as it can.

    `run(stage, position)` runs those of a stage from a position on, and returns the position of the
    first one that has to wait for another stage.

    Raises:
        ScheduleError: the stages wait for each other for ever.
    """
    position, before = [0] * len(schedule), None
    ends = list(map(len, schedule))
    while position != ends:
        if position == before:
            stuck = tuple(a[i] for a, i in zip(schedule, position, strict=True) if i < len(a))
            raise ScheduleError(f"deadlock at {', '.join(map(str, stuck))}", stuck)
        before = position
        position = [run(stage, at) for stage, at in enumerate(position)]


def check_complete(
    schedule: Schedule, vpp: int, micro_batches: int, placement: Placement = Placement.LOOP
) -> None:
    """Raise `ScheduleError` unless each stage runs every pass exactly once."""
    shape = pipeline_of(len(schedule), vpp, placement)
    for stage, actions in enumerate(schedule):
        wrong = wrong_passes(actions, stage, shape, micro_batches)
        if wrong:
            named = ", ".join(f"{count} x {action}" for action, count in wrong.items())
            raise ScheduleError(f"stage {stage}: {named}")


def wrong_passes(
    actions: StageActions, stage: int, shape: PipelineShape, micro_batches: int
) -> dict[Action, int]:
    """Return how often each pass stands in a stage's list that should, or should not, once.

    A backward pass is whole, or an input gradient and a weight gradient.
    """
    found = Counter(actions)
    expected = {
        Action(stage, kind, i, chunk)
        for chunk, place in enumerate(shape.places_of(stage))
        for i in shape.micro_batches(place, micro_batches)
        for kind in _kinds(found, stage, i, chunk)
    }
    return {a: found[a] for a in sorted(expected | found.keys()) if found[a] != (a in expected)}


def _kinds(found: Counter[Action], stage: int, micro_batch: int, chunk: int) -> list[ActionKind]:
    whole = Action(stage, ActionKind.BACKWARD, micro_batch, chunk)
    halves = [Action(stage, kind, micro_batch, chunk) for kind in _SPLIT[1:]]
    return _SPLIT if not found[whole] and any(found[half] for half in halves) else _WHOLE
