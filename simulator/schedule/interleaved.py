"""Interleaved 1F1B: each stage holds several model chunks, which shrinks the bubble by vpp."""

from __future__ import annotations

from simulator.schedule.action import Action, ActionKind, Schedule, StageActions

_Pass = tuple[int, int]
"""(micro-batch, chunk)."""


def interleaved(
    pp: int, vpp: int, micro_batches: int, group_size: int | None = None, extra: int = 0
) -> Schedule:
    """Return Megatron-LM's interleaved 1F1B; the bubble is (pp - 1) x (f + b) / vpp.

    A chunk runs `group_size` micro-batches in a row (None: pp, the depth-first order of the paper;
    more is broader, holds more activations and leaves transfers more time). The last group may be
    smaller, but not below pp. `extra` forward passes more come before the first backward pass.
    Source: Narayanan et al. 2021 (SC'21), section 2.2.2; Megatron-Core 0.9
    core/pipeline_parallel/schedules.py, forward_backward_pipelining_with_interleaving and
    get_schedule_table (`--microbatch-group-size-per-virtual-pipeline-stage`).
    """
    order = passes_in_groups(vpp, micro_batches, group_size or pp)
    first = [warm_up_passes(stage, pp, vpp, micro_batches, group_size) for stage in range(pp)]
    return tuple(_stage(s, min(first[s] + extra, len(order)), order, vpp) for s in range(pp))


def passes_in_groups(vpp: int, micro_batches: int, group: int) -> list[_Pass]:
    """Return (micro-batch, chunk) in the order of the forward passes of a stage.

    >>> passes_in_groups(2, 3, 2)
    [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
    """
    return [
        (i, chunk)
        for start in range(0, micro_batches, group)
        for chunk in range(vpp)
        for i in range(start, min(start + group, micro_batches))
    ]


def warm_up_passes(
    stage: int, pp: int, vpp: int, micro_batches: int, group_size: int | None
) -> int:
    """Return the forward passes of a stage before its first pair of forward and backward."""
    total = micro_batches * vpp
    if group_size is None and micro_batches == pp:
        return total
    return min((pp - stage - 1) * 2 + (vpp - 1) * (group_size or pp), total)


def _stage(stage: int, warm_up: int, order: list[_Pass], vpp: int) -> StageActions:
    total = len(order)
    forward = [Action(stage, ActionKind.FORWARD, i, c) for i, c in order]
    backward = [Action(stage, ActionKind.BACKWARD, i, vpp - 1 - c) for i, c in order]
    actions = forward[:warm_up]
    for i in range(total - warm_up):
        actions += (forward[warm_up + i], backward[i])
    return tuple(actions + backward[total - warm_up :])
