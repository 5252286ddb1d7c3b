"""1F1B: each stage alternates one forward and one backward after a short warm-up."""

from __future__ import annotations

from simulator.schedule.action import Action, ActionKind, Schedule, StageActions


def one_f_one_b(pp: int, vpp: int, micro_batches: int, extra: int = 0) -> Schedule:
    """Return the 1F1B actions; stage s holds at most min(pp - s, micro_batches) activations.

    The bubble is (pp - 1) x (f + b). `extra` forward passes more come before the first backward
    pass, and as many activations more are held.
    Source: Narayanan et al. 2021 (SC'21), section 2.2.1 (PipeDream-Flush).
    """
    assert vpp == 1, "1f1b has one chunk a stage"
    first = [min(pp - s - 1 + extra, micro_batches) for s in range(pp)]
    return tuple(_stage(s, first[s], micro_batches) for s in range(pp))


def _stage(stage: int, warm_up: int, micro_batches: int) -> StageActions:
    forward, backward = ActionKind.FORWARD, ActionKind.BACKWARD
    actions = [Action(stage, forward, i) for i in range(warm_up)]
    for i in range(micro_batches - warm_up):
        actions.append(Action(stage, forward, warm_up + i))
        actions.append(Action(stage, backward, i))
    actions += [Action(stage, backward, i) for i in range(micro_batches - warm_up, micro_batches)]
    return tuple(actions)
