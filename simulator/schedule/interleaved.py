"""Interleaved 1F1B: each stage holds several model chunks, which shrinks the bubble by vpp."""

from __future__ import annotations

from simulator.schedule.action import Action, ActionKind, Schedule, StageActions


def interleaved(pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return Megatron-LM's interleaved 1F1B; the bubble is (pp - 1) x (f + b) / vpp.

    `micro_batches` must be a multiple of `pp`.
    Source: Narayanan et al. 2021 (SC'21), section 2.2.2, and Megatron-LM
    `forward_backward_pipelining_with_interleaving`.
    """
    assert micro_batches % pp == 0, "interleaving needs micro-batches in groups of pp"
    return tuple(
        _stage(stage, interleaved_warm_up(stage, pp, vpp, micro_batches), pp, vpp, micro_batches)
        for stage in range(pp)
    )


def interleaved_warm_up(stage: int, pp: int, vpp: int, micro_batches: int) -> int:
    """Return the forward passes of a stage before its first pair of forward and backward."""
    total = micro_batches * vpp
    if micro_batches == pp:
        return total
    return min((pp - stage - 1) * 2 + (vpp - 1) * pp, total)


def _stage(stage: int, warm_up: int, pp: int, vpp: int, micro_batches: int) -> StageActions:
    total = micro_batches * vpp
    forward = [Action(stage, ActionKind.FORWARD, *_place(i, pp, vpp)) for i in range(total)]
    backward = [_backward(stage, i, pp, vpp) for i in range(total)]
    actions = forward[:warm_up]
    for i in range(total - warm_up):
        actions += (forward[warm_up + i], backward[i])
    return tuple(actions + backward[total - warm_up :])


def _place(index: int, pp: int, vpp: int) -> tuple[int, int]:
    """Return (micro-batch, chunk) of the `index`-th forward pass of a stage."""
    group, inside = divmod(index, pp * vpp)
    return group * pp + inside % pp, inside // pp


def _backward(stage: int, index: int, pp: int, vpp: int) -> Action:
    micro_batch, chunk = _place(index, pp, vpp)
    return Action(stage, ActionKind.BACKWARD, micro_batch, vpp - 1 - chunk)
