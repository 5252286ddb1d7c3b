"""What a calibration measured of the software on a machine; it overrides what the stack assumes."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from simulator.files import FileRecord
from simulator.hardware.accelerator import Dtype
from simulator.units import Seconds

_Slowdown = Annotated[float, Field(ge=1, le=10)]


class KernelClass(StrEnum):
    """Kernels that communication on the same GPU slows down differently."""

    GEMM = "gemm"
    ATTENTION = "attention"
    MEMORY_BOUND = "memory_bound"


class MeasuredPart(StrEnum):
    """A part of a model that was timed by itself."""

    LAYER = "layer"
    EMBEDDING = "embedding"
    HEAD = "head"
    """Final norm, output projection and loss."""


class MeasuredPass(FileRecord):
    """Forward and backward pass over one part of a model on one device, without collectives.

    Where a forecast needs exactly this part, its modelled compute is scaled to these times.
    """

    part: MeasuredPart
    hidden_size: int = Field(ge=1)
    width: int = Field(ge=1)
    """Of a layer, the intermediate size of its MLP; else the rows of the vocabulary. Whole, before
    tensor parallelism."""
    heads: int = Field(default=0, ge=0)
    """Query heads of a layer, before tensor parallelism."""
    kv_heads: int = Field(default=0, ge=0)
    gated: bool = False
    """Whether the MLP has three matrices."""
    micro_batch: int = Field(ge=1)
    """Sequences."""
    seq: int = Field(ge=1)
    """Tokens of a sequence."""
    tp: int = Field(default=1, ge=1)
    precision: Dtype
    forward: Seconds
    backward: Seconds


class MeasuredUpkeep(FileRecord):
    """What PyTorch does with the parameters of one layer beside its passes, on one device.

    Copies and the CPU's way to them; bytes between ranks are not in it. Matched exactly, as passes
    are; units without layers cost by their parameters what the layer does.
    """

    hidden_size: int = Field(ge=1)
    width: int = Field(ge=1)
    """Intermediate size of the layer's MLP, before tensor parallelism."""
    heads: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    gated: bool = False
    tp: int = Field(default=1, ge=1)
    dp: int = Field(default=1, ge=1)
    """Data ranks between which the parameters are spread, or that have copies of them."""
    precision: Dtype
    parameters: float = Field(gt=0)
    """Of the layer, as one of tp ranks holds it."""
    gather: Seconds | None = None
    """FSDP2: into and out of the buffer of a gather, for one pass."""
    reduce: Seconds | None = None
    """FSDP2: into the buffer of a reduction, and what follows it."""
    buckets: Seconds | None = None
    """DDP: gradients into their bucket and back."""
    update: Seconds | None = None
    """The optimizer's, on what a rank keeps."""


class SoftwareConstants(FileRecord):
    """Times of one software stack on one machine."""

    stack: str
    """The stack that ran."""
    cpu_launch: Seconds | None = None
    """CPU time to launch one kernel; None leaves the stack's."""
    cpu_collective: Seconds | None = None
    """CPU time to launch one collective."""
    compute_slowdown: dict[KernelClass, _Slowdown] = Field(default_factory=dict)
    """k: time of compute beside communication over its time alone."""
    comm_slowdown: _Slowdown | None = None
    """m: time of communication beside compute over its time alone."""
    step_scale: float = Field(default=1.0, gt=0)
    """Measured over modelled time of short training runs on one device; multiplies all compute,
    that of measured passes too: a part timed by itself finds its weights in the cache."""
    step_spread: float | None = Field(default=None, gt=0, lt=1)
    """Of step times of this stack on this machine; it takes the place of the stack's `spread`."""
    passes: tuple[MeasuredPass, ...] = ()
    """Parts of models that were timed with this stack; matched exactly."""
    upkeep: tuple[MeasuredUpkeep, ...] = ()
    """What their parameters cost beside them; matched exactly."""
