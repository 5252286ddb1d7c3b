"""The choices that a stack or a layout names: kernels, recomputation, schedules, partitions."""

from __future__ import annotations

from enum import StrEnum

from simulator.hardware.software_constants import KernelClass

__all__ = [
    "AttentionKernel",
    "KernelClass",
    "PartitionRule",
    "Recompute",
    "RecomputeMethod",
    "RecomputeModule",
    "ScheduleName",
    "SelectiveRecompute",
]


class AttentionKernel(StrEnum):
    """How attention scores are computed."""

    FLASH = "flash"
    UNFUSED = "unfused"


class Recompute(StrEnum):
    """What the forward pass throws away and computes again."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


class RecomputeModule(StrEnum):
    """A part of a layer that selective recomputation can name, as Megatron-LM names it."""

    CORE_ATTENTION = "core_attn"
    """Scores, softmax and context; what `recompute = "selective"` means where none is named."""
    LAYERNORM = "layernorm"
    """The norms in front of attention and MLP: their outputs are not kept."""
    MLA_UP_PROJECTION = "mla_up_proj"
    """Up projections and rotary embedding of latent attention."""
    MOE_ACTIVATION = "moe_act"
    """The experts' activation."""
    SHARED_EXPERTS = "shared_experts"
    """The shared experts of a layer."""
    MLP = "mlp"
    """The whole MLP of a dense layer, behind its norm."""
    MOE = "moe"
    """The whole mixture of experts, behind its norm, all-to-all included."""


class SelectiveRecompute(StrEnum):
    """What `recompute = "selective"` means to a framework."""

    MODULES = "modules"
    """Named parts of a layer, the attention core where none is named (Megatron-LM)."""
    OPERATORS = "operators"
    """All but the results of attention, of reduce-scatters and of every second product
    (torchtitan `selective_ac_option = "op"`)."""


class RecomputeMethod(StrEnum):
    """Which layers full recomputation treats as one, as Megatron-LM names it."""

    BLOCK = "block"
    """The first `recompute_num_layers` of each virtual stage, one by one; the others not."""
    UNIFORM = "uniform"
    """All, `recompute_num_layers` at a time, of which only the first's input is kept."""


class ScheduleName(StrEnum):
    """A pipeline schedule."""

    GPIPE = "gpipe"
    """All forward passes, then all backward passes."""
    ONE_F_ONE_B = "1f1b"
    """One forward, one backward, after a warm-up (PipeDream-Flush)."""
    INTERLEAVED = "interleaved"
    """1F1B with vpp chunks a stage (Megatron-LM)."""
    LOOPED_BFS = "looped-bfs"
    """GPipe with vpp chunks a stage, one chunk after the other."""
    ZERO_BUBBLE_H1 = "zb-h1"
    """1F1B whose weight gradients fill the bubble, at the memory of the first stage."""
    ZERO_BUBBLE_V = "zb-v"
    """Two chunks a stage in a V, weight gradients put off."""
    DUALPIPE = "dualpipe"
    """Micro-batches from both ends, two copies of the parameters (DeepSeek-V3)."""
    DUALPIPE_V = "dualpipe-v"
    """Half of DualPipe, folded to a V: one copy of the parameters."""
    CSV = "csv"
    """Read from `schedule_file`."""


class PartitionRule(StrEnum):
    """How a framework spreads layers over pipeline stages when none is given."""

    EVEN = "even"
    """Layers must divide by pp x vpp (Megatron-LM)."""
    BALANCED = "balanced"
    """The first stages take one layer more (DeepSpeed `type:transformer`)."""
    EMBEDDING_COUNTS = "embedding-counts"
    """Embedding and head each count as one layer."""
    BY_COST = "by-cost"
    """Boundaries where the cumulated cost passes each stage's share (nanotron)."""
