"""Sharing the maxima of delayed scaling at the end of a pass."""

from __future__ import annotations

from simulator.cost.collectives.select import CollectiveCosts
from simulator.cost.plan import CommPlan
from simulator.parallel.domains import group_shape
from simulator.parallel.groups import Collective
from simulator.parallel.program import StepProgram
from simulator.parallel.segments import WHOLE_CHUNK
from simulator.parallel.work import FP32_BYTES
from simulator.schedule.tasks import Work, WorkKind
from simulator.workload.recipes import Maximum

_TENSORS_A_LAYER = 8
"""Two operands that are cast in a forward pass of each of four linear layers; a backward pass has
one, so that this is an upper bound of a message that only its latency decides."""
_LAST = {
    WorkKind.FORWARD: True,
    WorkKind.BACKWARD: False,
    WorkKind.BACKWARD_INPUT: False,
}
"""Kinds of passes, and whether their last segment in time is the chunk's last."""


def maxima_seconds(program: StepProgram, work: Work, collectives: CollectiveCosts) -> float:
    """Return the seconds of the all-reduce of all maxima that ends a pass over a chunk."""
    plan = maxima_plan(program, work, collectives)
    return 0.0 if plan is None else plan.seconds


def maxima_plan(program: StepProgram, work: Work, collectives: CollectiveCosts) -> CommPlan | None:
    """Return the all-reduce of all maxima that ends a pass over a chunk; None where there is none.

    Delayed scaling concatenates the maxima of the pass and reduces them over the tp x cp x dp ranks
    of a stage when the outermost autocast region of a pass ends; compute waits for it. Other
    recipes share none, or share them tensor by tensor.
    Source: Transformer Engine 2.x pytorch/fp8.py (`reduce_and_update_fp8_tensors`); Megatron-Core
    core/parallel_state.py (`get_amax_reduction_group`).
    """
    scaling, layout = program.shard.scaling, program.layout
    if scaling is None or scaling.maximum is not Maximum.PASS or work.kind not in _LAST:
        return None
    chunk = program.chunks[work.chunk]
    closing = len(chunk.segments) - 1 if _LAST[work.kind] else 0
    if work.segment not in (WHOLE_CHUNK, closing):
        return None
    group = group_shape(layout.tp * layout.cp * layout.dp, 1, program.domains)
    layers = sum(count for _, count in chunk.whole.layers)
    payload = FP32_BYTES * _TENSORS_A_LAYER * layers
    if group.size == 1 or not layers:
        return None
    return collectives.plan(Collective.ALL_REDUCE, payload, group)
