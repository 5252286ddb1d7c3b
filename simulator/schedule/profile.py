"""What a stage's list of passes says about any order of times: which come first and last."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

from simulator.parallel.placement import PipelineShape
from simulator.schedule.action import Action, ActionKind, StageActions
from simulator.schedule.memory import stand_in
from simulator.schedule.registry import PLAIN, ScheduleOptions, build_schedule, pipeline_shape
from simulator.schedule.rounds import Rounds, rounds_of
from simulator.workload.stack_choices import ScheduleName

Counts = tuple[tuple[tuple[ActionKind, int], int], ...]
"""How many passes of each kind and place."""
_BACK = (ActionKind.BACKWARD, ActionKind.BACKWARD_INPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProfile:
    """The ends of one stage's list; counts are by kind and place."""

    first: int
    """Place of the first pass."""
    first_back: int
    """Place of the first backward pass."""
    last_forward: int
    last_back: int
    """Place of the last backward pass, whole or of the input."""
    before: Counts
    """Passes before the first backward pass: all forward."""
    after: Counts
    """Passes after the last forward pass."""
    trailing: Counts
    """Weight gradients after the last other pass."""
    total: Counts
    """All passes of the step."""
    splits: bool
    """Whether weight gradients are put off."""
    forward_first: bool
    """Whether all forward passes come before the first backward pass."""


@lru_cache(maxsize=16384)
def stage_profile(
    name: ScheduleName,
    pp: int,
    vpp: int,
    micro_batches: int,
    options: ScheduleOptions = PLAIN,
    *,
    stage: int,
) -> StageProfile:
    """Return the profile of a stage."""
    rounds = rounds_of(name, pp, vpp, micro_batches, options=options, stage=stage)
    if rounds is None:
        return stage_profiles(name, pp, vpp, micro_batches, options)[stage]
    return _alternating(rounds, pipeline_shape(name, pp, vpp, options).places_of(stage))


@lru_cache(maxsize=1024)
def splits_backward(
    name: ScheduleName, pp: int, vpp: int, micro_batches: int, options: ScheduleOptions = PLAIN
) -> bool:
    """Return whether any stage puts its weight gradients off."""
    if rounds_of(name, pp, vpp, micro_batches, options=options, stage=0) is not None:
        return False
    return any(s.splits for s in stage_profiles(name, pp, vpp, micro_batches, options))


def _alternating(rounds: Rounds, places: tuple[int, ...]) -> StageProfile:
    """Return the profile of a stage whose list of passes has a closed form."""
    forward = tuple((ActionKind.FORWARD, place) for place in places)
    backward = tuple((ActionKind.BACKWARD, place) for place in places)
    each = (rounds.micro_batches,) * rounds.vpp
    back = rounds.of_chunks(rounds.passes - rounds.ahead)[::-1]
    left = tuple(all_ - done for all_, done in zip(each, back, strict=True))
    return StageProfile(
        first=places[0],
        first_back=places[-1],
        last_forward=places[-1],
        last_back=places[0],
        before=_some(forward, rounds.of_chunks(rounds.ahead)),
        after=_some(backward, left),
        trailing=(),
        total=_some(forward + backward, each + each),
        splits=False,
        forward_first=rounds.ahead == rounds.passes,
    )


def _some(keys: tuple[tuple[ActionKind, int], ...], counts: tuple[int, ...]) -> Counts:
    return tuple((key, count) for key, count in zip(keys, counts, strict=True) if count)


@lru_cache(maxsize=1024)
def stage_profiles(
    name: ScheduleName, pp: int, vpp: int, micro_batches: int, options: ScheduleOptions = PLAIN
) -> tuple[StageProfile, ...]:
    """Return the profile of each stage, from the list of its passes."""
    enough = stand_in(name, pp, vpp, micro_batches, options)
    shape = pipeline_shape(name, pp, vpp, options)
    ends = _profiles(name, pp, vpp, enough, options)
    more = micro_batches - enough
    return ends if not more else tuple(_longer(stage, shape, more) for stage in ends)


@lru_cache(maxsize=1024)
def _profiles(
    name: ScheduleName, pp: int, vpp: int, micro_batches: int, options: ScheduleOptions
) -> tuple[StageProfile, ...]:
    shape = pipeline_shape(name, pp, vpp, options)
    schedule = build_schedule(name, pp, vpp, micro_batches, options)
    return tuple(_profile(actions, shape) for actions in schedule)


def _profile(actions: StageActions, shape: PipelineShape) -> StageProfile:
    kinds = [action.kind for action in actions]
    first_back = next(i for i, kind in enumerate(kinds) if kind in _BACK)
    last = len(kinds) - 1
    last_forward = last - kinds[::-1].index(ActionKind.FORWARD)
    last_back = next(i for i in range(last, -1, -1) if kinds[i] in _BACK)

    def place(index: int) -> int:
        return shape.place(actions[index].stage, actions[index].chunk)

    return StageProfile(
        first=place(0),
        first_back=place(first_back),
        last_forward=place(last_forward),
        last_back=place(last_back),
        before=_counts(actions[:first_back], shape),
        after=_counts(actions[last_forward + 1 :], shape),
        trailing=_counts(actions[last_back + 1 :], shape),
        total=_counts(actions, shape),
        splits=ActionKind.BACKWARD_WEIGHT in kinds,
        forward_first=last_forward < first_back,
    )


def _longer(profile: StageProfile, shape: PipelineShape, more: int) -> StageProfile:
    """Return the profile with `more` micro-batches: whole backward passes where there are any."""
    counts = dict(profile.total)
    each = len(shape.micro_batches(profile.first, more))
    whole = any(kind is ActionKind.BACKWARD for kind, _ in counts)
    for kind, place in counts:
        if kind is ActionKind.FORWARD or (kind is ActionKind.BACKWARD) == whole:
            counts[kind, place] += each
    return replace(profile, total=tuple(counts.items()))


def _counts(actions: StageActions | list[Action], shape: PipelineShape) -> Counts:
    found = Counter((action.kind, shape.place(action.stage, action.chunk)) for action in actions)
    return tuple(found.items())
