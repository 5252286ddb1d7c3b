"""Looped breadth-first: GPipe over several chunks a stage."""

from __future__ import annotations

from simulator.schedule.action import Action, ActionKind, Schedule


def looped_bfs(pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return all micro-batches through chunk after chunk, then all back in reverse order.

    With at least pp micro-batches the bubble is (pp - 1) x (f + b) / vpp; all activations are kept.
    Source: Lamy-Poirier 2022, Breadth-First Pipeline Parallelism (arXiv:2211.05953), section 3;
    PyTorch 2.9 torch/distributed/pipelining/schedules.py, ScheduleLoopedBFS.
    """
    count = micro_batches
    return tuple(
        (
            *(Action(s, ActionKind.FORWARD, i, c) for c in range(vpp) for i in range(count)),
            *(
                Action(s, ActionKind.BACKWARD, i, c)
                for c in reversed(range(vpp))
                for i in reversed(range(count))
            ),
        )
        for s in range(pp)
    )
