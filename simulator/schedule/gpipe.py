"""GPipe: all forward passes, then all backward passes."""

from __future__ import annotations

from simulator.schedule.action import Action, ActionKind, Schedule


def gpipe(pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return all forwards then all backwards of each stage; the bubble is (pp - 1) x (f + b).

    Source: Huang et al. 2019, GPipe, section 2.3.
    """
    assert vpp == 1, "gpipe has one chunk a stage"
    kinds = (ActionKind.FORWARD, ActionKind.BACKWARD)
    return tuple(
        tuple(Action(stage, kind, i) for kind in kinds for i in range(micro_batches))
        for stage in range(pp)
    )
