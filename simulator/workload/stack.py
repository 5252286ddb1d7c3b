"""A training stack: what a software framework does with the same model on the same machine."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, nearest, read_record
from simulator.units import Bytes, Seconds

STACK_FOLDER = Path(__file__).resolve().parent / "stacks"
_ZeroStage = Annotated[int, Field(ge=0, le=3)]


class AttentionKernel(StrEnum):
    """How attention scores are computed."""

    FLASH = "flash"
    UNFUSED = "unfused"


class Recompute(StrEnum):
    """What the forward pass throws away and computes again."""

    NONE = "none"
    SELECTIVE = "selective"
    FULL = "full"


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


class Kernels(FileRecord):
    """Which kernels the stack runs."""

    attention: AttentionKernel
    fused_softmax: bool = True
    """Scale, mask and softmax in one kernel (unfused attention only)."""
    fused_activation: bool = True
    """Bias and activation, or SwiGLU, in one kernel."""
    fused_residual: bool = True
    """Bias, dropout and residual add in one kernel."""
    fused_rope: bool = True
    fused_norm: bool = True
    dropout: bool = False
    """Whether hidden and attention dropout run (GPT-3 style recipes)."""
    keeps_gathered: bool = False
    """With sequence parallelism, keep the gathered input of a column-parallel layer for the
    backward pass instead of gathering it again."""
    accumulate_bytes: float = Field(default=0.0, ge=0)
    """Bytes moved a parameter and micro-batch to add a weight gradient outside its GEMM."""
    fused_loss: bool = False
    """Cross-entropy in one kernel a pass, instead of a chain of pointwise ones."""
    logits_passes: float = Field(gt=0)
    """Times the logits are read or written, forward and backward together, in 4-byte elements."""
    logits_bytes: float = Field(gt=0)
    """Bytes alive a logit when the loss is computed."""
    memory_factor: float = Field(default=1.0, gt=0)
    """Time of this stack's memory-bound kernels over that of the accelerator's best ones."""
    cpu_launch: Seconds
    """CPU time to launch one kernel; a layer takes at least its launches x this."""
    cpu_collective: Seconds
    """CPU time to launch one collective."""


class Overlap(FileRecord):
    """Which communication the stack hides behind compute."""

    gradient_reduce: bool
    """Gradient buckets are reduced while the last backward pass runs."""
    parameter_gather: bool
    """ZeRO-1 parameters are gathered while the first forward pass runs."""
    pipeline_send: bool
    """Pipeline transfers run while the next micro-batch computes."""
    pipeline_slices: bool = True
    """Each tp rank sends its slice of an activation, and the receivers gather them."""
    tensor_backward: bool
    """The input-gradient collective hides behind the weight-gradient GEMM."""
    tensor_fraction: float = Field(default=0.0, ge=0, le=1)
    """Share of a tensor-parallel collective that its own GEMM hides (user buffers, async tp)."""
    prefetch: int = Field(default=1, ge=0, le=16)
    """FSDP units gathered ahead of the one that computes."""


class Numerics(FileRecord):
    """Dtypes and bytes a parameter."""

    parameter_bytes: float = Field(gt=0)
    """Of the copy that the matrix products read (2 in bf16)."""
    gradient_bytes: float = Field(gt=0)
    """Of the accumulated gradient."""
    master_bytes: float = Field(ge=0)
    """Of the optimizer's own copy of the parameter; 0 where it updates the parameter itself."""
    state_bytes: float = Field(default=4.0, gt=0)
    """Of one optimizer state."""
    reduce_bytes: float = Field(gt=0)
    """Of a gradient on the wire."""
    gather_bytes: float = Field(gt=0)
    """Of a parameter on the wire (ZeRO)."""
    gradient_passes: float = Field(default=2.0, ge=0)
    """Times the whole local gradient is read or written outside the update: norm, zeroing."""


class Memory(FileRecord):
    """What the allocator and the runtime add."""

    context: Bytes
    """CUDA context, NCCL buffers, cuBLAS workspace: outside the allocator, bytes."""
    fragmentation: float = Field(ge=1)
    """Reserved over allocated memory."""


class Fit(FileRecord):
    """The few constants of a stack that were fitted on measured steps, and on which ones."""

    scale: dict[str, float] = Field(default_factory=dict)
    """Accelerator-constants name -> measured over modelled compute time."""
    attention: dict[str, float] = Field(default_factory=dict)
    """Accelerator-constants name -> time of the stack's attention kernel over that of the kernel
    which the constants were fitted on; on top of `scale`."""
    free: tuple[str, ...] = ()
    """Constants that were fitted: "scale", "attention", or keys such as "kernels.memory_factor"."""
    rows: tuple[str, ...] = Field(default=(), max_length=10)
    """Ids of the step rows used; they never count as validation."""
    spread: float = Field(default=0.08, gt=0, lt=1)
    """The 80 % interval of a step time t is t / (1 + spread) to t (1 + spread)."""
    spread_source: str
    """Where `spread` comes from."""


class Stack(FileRecord):
    """One framework at one time."""

    name: str
    title: str
    frameworks: tuple[str, ...] = ()
    """Beginnings of the `framework` column in measured tables that mean this stack."""
    since: int = Field(default=0, ge=0, le=9999)
    """First year of the runs it describes, where a framework has several stacks."""
    kernels: Kernels
    overlap: Overlap
    numerics: Numerics
    memory: Memory
    partition: PartitionRule = PartitionRule.EVEN
    short_ends: bool = False
    """Whether first and last stage can take one layer less each where layers do not divide."""
    bucket_parameters: int = Field(default=40_000_000, ge=1)
    """Parameters a gradient bucket."""
    zero_stages: tuple[_ZeroStage, ...] = (0, 1)
    """ZeRO stages that the stack offers."""
    zero_stages_with_pipeline: tuple[_ZeroStage, ...] = (0, 1)
    """Those that it combines with pp > 1."""
    sequence_parallel: bool = True
    """Whether it can split norms and residuals over tp along the sequence."""
    recompute: tuple[Recompute, ...] = tuple(Recompute)
    """What it can recompute."""
    fit: Fit
    source: str


def stack_names() -> list[str]:
    """Return the names of the shipped stacks, sorted."""
    return sorted(path.stem for path in STACK_FOLDER.glob("*.toml"))


def load_stack(name_or_path: str, *, relative_to: Path | None = None) -> Stack:
    """Return a shipped stack by name, or the one in a TOML file.

    Raises:
        InputError: unknown name, or anything wrong in the file.
    """
    if name_or_path.endswith(".toml"):
        return read_record(Stack, (relative_to or Path()) / name_or_path)
    if name_or_path not in stack_names():
        raise InputError(
            Problem(
                where=name_or_path[:200],
                rule="is neither a shipped stack nor a .toml file",
                fix=nearest(name_or_path[:200], stack_names()),
            )
        )
    return read_record(Stack, STACK_FOLDER / f"{name_or_path}.toml")
