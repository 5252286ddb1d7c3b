"""What a checkpoint saves of a stage, each part once."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ZERO_PARAMETERS
from simulator.parallel.program import StepProgram
from simulator.parallel.states import Group, groups, state_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Bytes of a group of parameters in a checkpoint."""

    weights: float
    """In the format in which they compute; 0 where only masters are saved."""
    states: float
    """Master copies and the optimizer's states."""

    @property
    def total(self) -> float:
        """All of it."""
        return self.weights + self.states


def saved_bytes(program: StepProgram, group: Group, zero_stage: int) -> Saved:
    """Return what is saved of a group of parameters of a rank, each copy once.

    Adam in Megatron-LM: 2 (bf16) + 4 (master) + 8 (moments) = 14 bytes a parameter; narrow copies
    of weights are not saved. In ZeRO-3 a stack that keeps the sharded master alone saves no weights
    beside it. What stacks count above one fp32 master is an fp32 gradient, which is not saved.
    """
    numbers = program.numbers
    masters_alone = numbers.master > 0 and not program.stack.numerics.keeps_sharded
    masters_alone = masters_alone and zero_stage >= ZERO_PARAMETERS
    master = min(numbers.master, Dtype.FP32.bytes)
    alone = group.trained if masters_alone else 0.0
    return Saved(
        weights=numbers.parameter * (group.parameters - alone),
        states=master * group.trained + state_bytes(program, group),
    )


def stage_checkpoint(program: StepProgram, stage: int) -> float:
    """Return the bytes that a rank of a stage writes of a checkpoint.

    Ranks that hold the same parameters write an equal part each, whether or not ZeRO shards them
    (fully parallel saving).
    """
    layout = program.layout
    rest, experts = groups(program, stage)
    ranks = layout.tp * layout.cp * layout.dp
    copies = ranks // layout.tp
    expert_copies = ranks // (layout.ep * layout.expert_tp)
    saved, of_experts = (
        saved_bytes(program, group, layout.zero_stage).total for group in (rest, experts)
    )
    return saved / copies + of_experts / expert_copies
