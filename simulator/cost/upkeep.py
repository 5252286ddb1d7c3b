"""What a layer's parameters were measured to cost beside its passes: copies, and the update.

Copies around a collective are part of it: seconds in which no link is loaded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from simulator.cost.blocks import KernelCosts
from simulator.cost.plan import CommPlan
from simulator.cost.update import update_kernel_seconds
from simulator.hardware.accelerator import Dtype
from simulator.hardware.software_constants import MeasuredUpkeep, SoftwareConstants
from simulator.parallel.program import StepProgram
from simulator.parallel.segments import Segment
from simulator.schedule.tasks import WorkKind
from simulator.workload.attention_blocks import AttentionSpec
from simulator.workload.job import Optimizer
from simulator.workload.layer import LayerSpec
from simulator.workload.mlp_blocks import MlpSpec


class _Key(NamedTuple):
    """What a measured layer must have in common with a program's, besides the precision."""

    hidden_size: int
    width: int
    heads: int
    kv_heads: int
    gated: bool
    tp: int
    dp: int


class UpkeepTimes:
    """What was measured of one machine and precision."""

    def __init__(self, software: SoftwareConstants | None, precision: Dtype) -> None:
        measured = software.upkeep if software is not None else ()
        self._scale = software.step_scale if software is not None else 1.0
        self._found = {_key_of(m): m for m in measured if m.precision is precision}

    def with_copies(
        self,
        program: StepProgram,
        kind: WorkKind,
        segment: Segment,
        plans: tuple[CommPlan, ...],
    ) -> tuple[CommPlan, ...]:
        """Return the collectives of a segment's parameters or gradients, behind their copies."""
        found = self._of(program, program.data_group.size)
        if found is None or not plans or not plans[0].phases:
            return plans
        sharded = program.shards_parameters
        seconds = found.gather if kind is WorkKind.GATHER and sharded else None
        if kind is WorkKind.REDUCE and (sharded or program.layout.zero_stage == 0):
            seconds = found.reduce if sharded else found.buckets
        if seconds is None:
            return plans
        copied = segment.parameters if kind is WorkKind.GATHER else segment.trained
        each = self._scale * seconds * copied / found.parameters
        first, *others = plans
        phase, *rest = first.phases
        longer = replace(phase, fixed=phase.fixed + each)
        return replace(first, phases=(longer, *rest)), *others

    def update_seconds(
        self, program: StepProgram, stage: int, modelled: float, kernels: KernelCosts
    ) -> float:
        """Return the seconds of a stage's update, measured of layers and `modelled` of the rest.

        What is measured is AdamW on all weights: any other update is as modelled.
        """
        layout, shards = program.layout, program.shards_parameters
        found = self._of(program, program.data_group.size if shards else 1)
        if not shards and layout.zero_stage:
            return modelled
        if found is None or found.update is None or layout.optimizer_offload:
            return modelled
        if program.job.freezes or program.job.optimizer is not Optimizer.ADAM:
            return modelled
        count = sum(_alike(program, chunk.whole, found) for chunk in program.stage_chunks(stage))
        share = count * found.parameters / program.stage_parameters(stage)
        plain = update_kernel_seconds(program, stage, kernels) * share
        return float(modelled - plain + self._scale * count * found.update)

    def _of(self, program: StepProgram, dp: int) -> MeasuredUpkeep | None:
        """Return what was measured of the program's first layer as one of tp x dp ranks."""
        if not self._found:
            return None
        layers = (work.layer for chunk in program.chunks for work, _ in chunk.whole.layers)
        first = next(layers, None)
        key = None if first is None else _wanted(program, first, dp)
        return None if key is None else self._found.get(key)


def _alike(program: StepProgram, segment: Segment, found: MeasuredUpkeep) -> int:
    """Return the layers of a segment that are like the measured one."""
    key = _key_of(found)
    return sum(n for work, n in segment.layers if _wanted(program, work.layer, key.dp) == key)


def _key_of(measured: MeasuredUpkeep) -> _Key:
    return _Key(*(getattr(measured, name) for name in _Key._fields))


def _wanted(program: StepProgram, layer: LayerSpec, dp: int) -> _Key | None:
    attention, mlp = layer.attention, layer.mlp
    if not isinstance(attention, AttentionSpec) or not isinstance(mlp, MlpSpec):
        return None
    return _Key(
        hidden_size=layer.hidden_size,
        width=mlp.intermediate_size,
        heads=attention.num_attention_heads,
        kv_heads=attention.num_key_value_heads,
        gated=mlp.gated,
        tp=program.shard.tp,
        dp=dp,
    )
