"""DualPipeV: DualPipe cut in half; two chunks a stage in the shape of a V."""

from __future__ import annotations

from collections import deque

from simulator.schedule.action import Action, ActionKind, Schedule

_F, _B = ActionKind.FORWARD, ActionKind.BACKWARD
_I, _W = ActionKind.BACKWARD_INPUT, ActionKind.BACKWARD_WEIGHT
Pass = tuple[ActionKind, int, int]
"""Kind, way (0 out, 1 back) and number of the micro-batch of that way."""


def dualpipe_v(pp: int, vpp: int, micro_batches: int) -> Schedule:
    """Return DualPipeV; needs at least 2 pp micro-batches.

    Chunks are places p and 2 pp - 1 - p. In the middle every forward pass runs beside a backward
    pass of another micro-batch, which hides the all-to-all of experts (`Overlap.expert_fraction`);
    here the two stand one after the other. Weight gradients are put off only in the warm-up and in
    the second half of the cool-down.
    Source: DeepSeek-AI, DualPipe (github.com/deepseek-ai/DualPipe, 2025); PyTorch 2.9
    ScheduleDualPipeV.
    """
    assert vpp == 2, "dualpipe-v has two chunks a stage"  # noqa: PLR2004
    return tuple(
        tuple(Action(stage, kind, i, way) for kind, way, i in two_ways(stage, pp, micro_batches))
        for stage in range(pp)
    )


def two_ways(rank: int, ranks: int, count: int) -> list[Pass]:
    """Return the passes of one of `ranks` ranks that `count` micro-batches meet on two ways."""
    order = _Order()
    rest, zero_bubble = ranks - rank - 1, False
    order.run(2 * rest, (_F, 0))
    order.run(rank + 1, (_F, 0), (_F, 1))
    order.run(rest, (_I, 1), (_W, 1), (_F, 1))
    order.run(count - 2 * ranks + rank + 1, (_F, 0), (_B, 1), (_F, 1), (_B, 0))
    order.run(rest, (_B, 1), (_F, 1), (_B, 0))
    half = (rank + 1) // 2
    for i in range(rank + 1):
        zero_bubble = zero_bubble or (i == half and rank % 2 == 1)
        order.run(1, (_I if zero_bubble else _B, 1))
        zero_bubble = zero_bubble or (i == half and rank % 2 == 0)
        order.run(1, (_I if zero_bubble else _B, 0))
    order.run(rest, (_W, 0), (_I if zero_bubble else _B, 0))
    order.run(rank + 1, (_W, 0))
    return order.passes


class _Order:
    """A growing list of passes; weight gradients come first put off, first run."""

    def __init__(self) -> None:
        self.passes: list[Pass] = []
        self.forward, self.backward = [0, 0], [0, 0]
        self.pending: deque[Pass] = deque()

    def run(self, times: int, *steps: tuple[ActionKind, int]) -> None:
        for _ in range(times):
            for kind, way in steps:
                self._add(kind, way)

    def _add(self, kind: ActionKind, way: int) -> None:
        if kind is _W:
            if self.pending:
                self.passes.append(self.pending.popleft())
            return
        counts = self.forward if kind is _F else self.backward
        number = counts[way]
        counts[way] += 1
        self.passes.append((kind, way, number))
        if kind is _I:
            self.pending.append((_W, way, number))
