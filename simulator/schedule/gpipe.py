"""GPipe: all forward passes, then all backward passes."""

from __future__ import annotations

from simulator.schedule.action import Action, ActionKind, Schedule


def gpipe(pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return all forwards then all backwards of each stage; the bubble is (pp - 1) x (f + b).

    Micro-batches go chunk by chunk, so that vpp > 1 is a looped breadth-first schedule.
    Source: Huang et al. 2019, GPipe, section 2.3.
    """
    forward, backward = ActionKind.FORWARD, ActionKind.BACKWARD
    return tuple(
        (
            *(Action(s, forward, i, c) for c in range(vpp) for i in range(micro_batches)),
            *(
                Action(s, backward, i, c)
                for c in reversed(range(vpp))
                for i in range(micro_batches)
            ),
        )
        for s in range(pp)
    )


def gpipe_warm_up(stage: int, pp: int, vpp: int, micro_batches: int) -> int:  # noqa: ARG001
    """Return the forward passes of a stage before its first backward pass: all of them."""
    return micro_batches * vpp
