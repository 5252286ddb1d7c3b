"""ZB-H1: 1F1B with the weight gradients put off into the bubble, at the memory of 1F1B."""

from __future__ import annotations

from simulator.schedule.action import Action, ActionKind, Schedule, StageActions
from simulator.schedule.interleaved import passes_in_groups


def zb_h1(pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return ZB-H1; the bubble is (pp - 1) x (f + i - w) / vpp for f, i >= w, memory as 1F1B.

    Stage s warms up as in 1F1B and runs the weight gradients of a micro-batch s backward passes
    later than 1F1B does, so that each stage holds as much as the first one. The order is
    handcrafted for f = i = w and does not change with the lengths. With vpp > 1 chunks run in
    groups as in interleaved 1F1B, of micro_batches / max(1, micro_batches // pp) each.
    Source: Qi et al. 2024, Zero Bubble Pipeline Parallelism (arXiv:2401.10241), section 2.2 and
    figure 3; PyTorch 2.9 ScheduleInterleavedZeroBubble (vpp > 1).
    """
    group = round_size(pp, micro_batches)
    order = passes_in_groups(vpp, micro_batches, group)
    ahead = (vpp - 1) * group
    return tuple(_stage(s, min(ahead + pp - 1 - s, len(order)), order, vpp) for s in range(pp))


def round_size(pp: int, micro_batches: int) -> int:
    """Return the micro-batches that a chunk runs in a row, in rounds of like size.

    >>> round_size(4, 8), round_size(4, 10), round_size(4, 3)
    (4, 5, 3)
    """
    return micro_batches // max(1, micro_batches // pp)


def _stage(stage: int, warm_up: int, order: list[tuple[int, int]], vpp: int) -> StageActions:
    forward = [Action(stage, ActionKind.FORWARD, i, c) for i, c in order]
    back = [(i, vpp - 1 - c) for i, c in order]
    actions = forward[:warm_up]
    weights = iter(back)
    for number, (micro_batch, chunk) in enumerate(back):
        actions += forward[warm_up + number : warm_up + number + 1]
        actions.append(Action(stage, ActionKind.BACKWARD_INPUT, micro_batch, chunk))
        if number >= stage:
            actions.append(Action(stage, ActionKind.BACKWARD_WEIGHT, *next(weights)))
    actions += (Action(stage, ActionKind.BACKWARD_WEIGHT, *rest) for rest in weights)
    return tuple(actions)
