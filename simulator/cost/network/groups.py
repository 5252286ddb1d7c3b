"""The ranks of the groups that act at the same time in one work of a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulator.parallel.domains import IntArray, members
from simulator.parallel.groups import GroupShape
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.program import StepProgram
from simulator.schedule.tasks import Work, WorkKind

WAYS = {
    WorkKind.SEND_FORWARD: 1,
    WorkKind.EXCHANGE_FORWARD: 1,
    WorkKind.SEND_BACKWARD: -1,
    WorkKind.EXCHANGE_BACKWARD: -1,
}
"""Places by which a transfer moves on."""


Alike = tuple[int, ...]
"""Data-parallel replicas, by their numbers, that do the same at the same time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Groups of one shape that do the same collective at the same time; equal ones are one key.

    All groups of `size` members `stride` ranks apart among the ranks of `stage`; or the pairs of
    ranks at the same place of `stage` and of `other`.
    """

    stage: int
    size: int
    stride: int
    other: int | None = None
    replicas: Alike | None = None
    """None: all replicas."""
    tasks: int = 1
    """Tasks of a step that play the same collective at once, an equal part of its bytes each."""

    def ranks(self, layout: ParallelLayout) -> IntArray:
        """Return (groups, size) the global ranks."""
        here = _stage(layout, self.stage, self.replicas)
        if self.other is not None:
            return np.stack((here, _stage(layout, self.other, self.replicas)), axis=1)
        return members(here, self.size, self.stride)


def together(
    program: StepProgram, work: Work, group: GroupShape, replicas: Alike | None = None
) -> Together | None:
    """Return which groups do a plan of a communication work; None where that is not known.

    `group` is the plan's. A transfer is made by pairs of ranks of two stages, in slices that the
    tensor ranks of the receiving stage then gather.
    """
    pipeline = program.layout.pipeline
    if work.kind is WorkKind.TIED_REDUCE:
        # Both stages have a task of it, and they start together.
        last = program.layout.pp - 1
        return Together(stage=0, other=last, size=2, stride=0, replicas=replicas, tasks=2)
    way = WAYS.get(work.kind)
    if way is None:
        return _within(work.stage, group, replicas)
    sender, receiver = pipeline.stage(work.chunk), pipeline.stage(work.chunk + way)
    if group.stride:
        return _within(receiver, group, replicas)
    return Together(stage=sender, other=receiver, size=2, stride=0, replicas=replicas)


def _within(stage: int, group: GroupShape, replicas: Alike | None) -> Together | None:
    if not group.stride:
        return None
    return Together(stage=stage, size=group.size, stride=group.stride, replicas=replicas)


def _stage(layout: ParallelLayout, stage: int, replicas: Alike | None) -> IntArray:
    each = layout.tp * layout.cp
    numbers = np.arange(layout.dp) if replicas is None else np.array(replicas)
    first = (stage * layout.dp + numbers) * each
    return (first[:, None] + np.arange(each)).ravel()
