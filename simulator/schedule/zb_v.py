"""ZB-V: two chunks a stage in the shape of a V, no bubble at the memory of 1F1B."""

from __future__ import annotations

from itertools import count

from simulator.schedule.action import Action, ActionKind, Schedule, StageActions

_F, _I, _W = ActionKind.FORWARD, ActionKind.BACKWARD_INPUT, ActionKind.BACKWARD_WEIGHT
_Step = tuple[ActionKind, int]
"""Kind and chunk of a pass; micro-batches of each follow in order."""
_PAIR: list[_Step] = [(_F, 0), (_I, 0), (_W, 0), (_F, 1), (_I, 1), (_W, 1)]


def zb_v(pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return the handcrafted ZB-V; for f = i = w stages rest only (pp - 1) chunk passes in all.

    The first stage also holds the last part of the model, so that no stage waits for the first
    micro-batch to come back. Each stage holds at most 2 pp chunks, half a stage each: the memory
    of 1F1B's first stage. Below 2 pp - 1 micro-batches passes of those that are not there are left
    out. The order does not change with the lengths.
    Source: Qi et al. 2024 (arXiv:2401.10241), section 6 and figure 7; PyTorch 2.9
    ScheduleZBVZeroBubble.
    """
    assert vpp == 2, "zb-v has two chunks a stage"  # noqa: PLR2004
    return tuple(_stage(stage, pp, micro_batches) for stage in range(pp))


def _stage(stage: int, pp: int, micro_batches: int) -> StageActions:
    enough = max(2 * pp - 1, micro_batches)
    steps: list[_Step] = [(_F, 0)] * (2 * (pp - stage) - 1)
    steps += [(_F, 1), (_F, 0)] * stage
    steps += [(_F, 1), (_I, 1), (_W, 1)] * (pp - stage)
    steps += _PAIR * (enough - 2 * pp + 1 + stage)
    steps += _PAIR[1:] * (pp - 1 - stage)
    steps += [(_I, 0), (_I, 1)] * stage
    steps += [(_I, 0), (_W, 0)] * (pp - stage)
    steps += [(_W, 1)] * stage + [(_W, 0)] * stage
    return numbered(stage, steps, micro_batches)


def numbered(stage: int, steps: list[_Step], micro_batches: int) -> StageActions:
    """Return passes with the micro-batches of each kind and chunk counted up from 0."""
    following = {step: count().__next__ for step in set(steps)}
    passes = [(step, following[step]()) for step in steps]
    return tuple(
        [
            Action(stage, kind, number, chunk)
            for (kind, chunk), number in passes
            if number < micro_batches
        ]
    )
