"""1F1B: each stage alternates one forward and one backward after a short warm-up."""

from __future__ import annotations

from simulator.schedule.action import Action, ActionKind, Schedule, StageActions


def one_f_one_b(pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return the 1F1B actions; stage s holds at most min(pp - s, micro_batches) activations.

    Source: Narayanan et al. 2021 (SC'21), section 2.2.1 (PipeDream-Flush).
    """
    assert vpp == 1, "1f1b has one chunk a stage"
    return tuple(
        _stage(s, one_f_one_b_warm_up(s, pp, vpp, micro_batches), micro_batches) for s in range(pp)
    )


def one_f_one_b_warm_up(stage: int, pp: int, vpp: int, micro_batches: int) -> int:  # noqa: ARG001
    """Return the forward passes of a stage before its first pair of forward and backward."""
    return min(pp - stage - 1, micro_batches)


def _stage(stage: int, warm_up: int, micro_batches: int) -> StageActions:
    forward, backward = ActionKind.FORWARD, ActionKind.BACKWARD
    actions = [Action(stage, forward, i) for i in range(warm_up)]
    for i in range(micro_batches - warm_up):
        actions.append(Action(stage, forward, warm_up + i))
        actions.append(Action(stage, backward, i))
    actions += [Action(stage, backward, i) for i in range(micro_batches - warm_up, micro_batches)]
    return tuple(actions)
