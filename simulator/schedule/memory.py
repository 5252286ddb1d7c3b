"""Activations that a stage holds over a step: the moments at which most are alive."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from simulator.parallel.layout import ScheduleName
from simulator.parallel.memory import InFlight
from simulator.schedule.action import Action, ActionKind, StageActions
from simulator.schedule.registry import PLAIN, ScheduleOptions, build_schedule
from simulator.schedule.rounds import rounds_of

_KEEPS_ALL = frozenset({ScheduleName.GPIPE, ScheduleName.LOOPED_BFS, ScheduleName.CSV})
_ONE_BY_ONE = frozenset(
    {
        *(ScheduleName.ZERO_BUBBLE_H1, ScheduleName.ZERO_BUBBLE_V),
        *(ScheduleName.DUALPIPE, ScheduleName.DUALPIPE_V),
    }
)
_KINDS = {kind: number for number, kind in enumerate(ActionKind)}
_ALIVE = np.array([{"F": 1, "B": -1, "I": -1}.get(kind, 0) for kind in ActionKind])
"""By kind: what a pass adds to the micro-batches of its chunk that are alive."""
_WAITING = np.array([{"I": 1, "W": -1}.get(kind, 0) for kind in ActionKind])
"""By kind: what it adds to those that wait for their weight gradients alone."""
_RISES = np.array([kind in ("F", "I") for kind in ActionKind])
_Pipeline = tuple[ScheduleName, int, int, int, ScheduleOptions]
_State = tuple[int, ...]
"""Micro-batches alive of each chunk, then those that wait for their weight gradients."""


def fullest_moments(
    name: ScheduleName, pp: int, vpp: int, micro_batches: int, options: ScheduleOptions = PLAIN
) -> tuple[tuple[InFlight, ...], ...]:
    """Return, for each stage, the moments of which one holds most bytes, whatever a chunk keeps.

    No moment of the step holds more of every chunk than one of these.
    """
    return _fullest((name, pp, vpp, stand_in(name, pp, vpp, micro_batches, options), options))


def stand_in(
    name: ScheduleName, pp: int, vpp: int, micro_batches: int, options: ScheduleOptions = PLAIN
) -> int:
    """Return a number of micro-batches for which a stage's list starts and ends in the same way.

    Past the warm-up all schedules but those that keep everything, or whose rounds grow with the
    micro-batches, repeat themselves. Those that repeat micro-batch by micro-batch do so from 2 pp
    on; of the others 4 pp and more, in whole groups, stand for any number.
    """
    if name in _KEEPS_ALL or (name is ScheduleName.ZERO_BUBBLE_H1 and vpp > 1):
        return micro_batches
    if name in _ONE_BY_ONE:
        return min(micro_batches, 2 * pp)
    group = 2 * (options.group_size or pp)
    least = max(4 * pp, 3 * group) + options.extra
    return min(micro_batches, least + (micro_batches - least) % group)


def in_flight(
    name: ScheduleName, pp: int, vpp: int, micro_batches: int, options: ScheduleOptions = PLAIN
) -> tuple[InFlight, ...]:
    """Return the fullest moment of each stage where chunks are of like size.

    A micro-batch that waits for its weight gradients alone counts as one that is alive.
    """
    moments = fullest_moments(name, pp, vpp, micro_batches, options)
    return tuple(max(stage, key=lambda moment: moment.count) for stage in moments)


def fullest_of_stages(
    name: ScheduleName,
    pp: int,
    vpp: int,
    micro_batches: int,
    *,
    options: ScheduleOptions = PLAIN,
    stages: tuple[int, int],
    alike: bool = False,
) -> tuple[InFlight, ...]:
    """Return the moments of neighbouring stages with like chunks, of which one holds most bytes.

    `stages` are the first and the last of them; `alike`: so are the chunks of a stage.
    """
    enough = stand_in(name, pp, vpp, micro_batches, options)
    pipeline = (name, pp, vpp, enough, options)
    # Of like stages the first one warms up longest.
    closed = _densest(pipeline, stages[0]) if alike else _alternating(pipeline, stages[0])
    return closed or _fullest_of_stages(pipeline, stages)


@lru_cache(maxsize=1024)
def _fullest(pipeline: _Pipeline) -> tuple[tuple[InFlight, ...], ...]:
    known = [_alternating(pipeline, stage) for stage in range(pipeline[1])]
    return tuple(filter(None, known)) or listed_moments(*pipeline)


def listed_moments(
    name: ScheduleName, pp: int, vpp: int, micro_batches: int, options: ScheduleOptions = PLAIN
) -> tuple[tuple[InFlight, ...], ...]:
    """Return for each stage what `fullest_moments` does, pass by pass."""
    schedule = build_schedule(name, pp, vpp, micro_batches, options)
    return tuple(_moments(actions, vpp) for actions in schedule)


@lru_cache(maxsize=4096)
def _alternating(pipeline: _Pipeline, stage: int) -> tuple[InFlight, ...]:
    """Return the fullest moments of a stage in closed form; none where there is no such form."""
    name, pp, vpp, micro_batches, options = pipeline
    rounds = rounds_of(name, pp, vpp, micro_batches, options=options, stage=stage)
    if rounds is None:
        return ()
    firsts: dict[_State, int] = {}
    for number, row in enumerate(rounds.alive().tolist()):
        firsts.setdefault(tuple(row), number)
    return tuple(
        _in_flight((*state, *(0,) * vpp), Action(stage, ActionKind.FORWARD, *forward), vpp)
        for state in _largest(list(firsts))
        for forward in [rounds.forward_pass(rounds.ahead - 1 + firsts[state])]
    )


@lru_cache(maxsize=4096)
def _densest(pipeline: _Pipeline, stage: int) -> tuple[InFlight, ...]:
    """Return those of a stage's moments, in closed form, at which most micro-batches are alive."""
    moments = _alternating(pipeline, stage)
    most = max((moment.count for moment in moments), default=0)
    return tuple(moment for moment in moments if moment.count == most)


@lru_cache(maxsize=1024)
def _fullest_of_stages(pipeline: _Pipeline, stages: tuple[int, int]) -> tuple[InFlight, ...]:
    first, last = stages
    found = {
        _state(moment, pipeline[2]): moment
        for moments in _fullest(pipeline)[first : last + 1]
        for moment in moments
    }
    return tuple(found[state] for state in _largest(list(found)))


def _state(moment: InFlight, vpp: int) -> _State:
    alive, waiting = moment.by_chunk, moment.for_weights
    return (*(alive.get(c, 0) for c in range(vpp)), *(waiting.get(c, 0) for c in range(vpp)))


def _moments(actions: StageActions, vpp: int) -> tuple[InFlight, ...]:
    """Return the states at the ends of rises that no other state exceeds in every chunk."""
    kinds = np.array([_KINDS[action.kind] for action in actions])
    chunks = np.array([action.chunk for action in actions])
    changes = np.zeros((len(actions), 2 * vpp), dtype=int)
    rows = np.arange(len(actions))
    changes[rows, chunks] += _ALIVE[kinds]
    changes[rows, vpp + chunks] += _WAITING[kinds]
    goes_on = np.append(kinds[1:] == _KINDS[ActionKind.FORWARD], False)
    ends = np.flatnonzero(_RISES[kinds] & ~goes_on)
    seen: dict[_State, int] = {}
    for number, row in zip(ends.tolist(), changes.cumsum(axis=0)[ends].tolist(), strict=True):
        seen.setdefault(tuple(row), number)
    return tuple(_in_flight(s, actions[seen[s]], vpp) for s in _largest(list(seen)))


def _largest(states: list[_State]) -> list[_State]:
    """Return the states, all different, that no other one equals or exceeds in every entry."""
    table = np.array(states)
    left, sums, found = np.arange(len(states)), table.sum(axis=1), []
    while len(left):
        top = left[sums[left].argmax()]
        found.append(top)
        left = left[(table[left] > table[top]).any(axis=1)]
    return [states[number] for number in sorted(found)]


def _in_flight(state: _State, moment: Action, vpp: int) -> InFlight:
    what = "forward" if moment.kind is ActionKind.FORWARD else "input gradient"
    return InFlight(
        by_chunk={chunk: n for chunk, n in enumerate(state[:vpp]) if n},
        for_weights={chunk: n for chunk, n in enumerate(state[vpp:]) if n},
        moment=f"backward pass after {what} of micro-batch {moment.micro_batch}, "
        f"chunk {moment.chunk}",
    )
