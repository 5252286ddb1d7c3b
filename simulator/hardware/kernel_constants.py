"""Empirical constants of the kernel cost model; the formulas stand in `simulator.cost`."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, field_validator

from simulator.files import FileRecord
from simulator.units import Seconds


class GemmLayout(StrEnum):
    """Which of the three products of a linear layer a GEMM is, in cuBLAS letters."""

    FORWARD = "forward"
    """TN: activations times transposed weights."""
    INPUT_GRADIENT = "input_gradient"
    """NN: output gradients times weights."""
    WEIGHT_GRADIENT = "weight_gradient"
    """NT: transposed output gradients times activations."""


class CastConstants(FileRecord):
    """Casting the activations of a GEMM to a narrow format, one scale a row, in its own kernel."""

    start: Seconds
    """Of an empty cast, seconds."""
    row: Seconds
    """A row that is short, seconds."""
    element: Seconds
    """An element of a row while its wave runs, seconds."""
    rows_in_flight: float = Field(gt=0)
    """Rows that one compute unit casts at once."""


class GemmConstants(FileRecord):
    """Tile and wave model of one dtype on one accelerator (`simulator.cost.gemm`)."""

    tiles: tuple[tuple[int, int], ...] = Field(min_length=1)
    """Output tiles (rows, columns) that the library chooses from."""
    splits: tuple[int, ...] = Field(min_length=1)
    """Parts into which k may be split (split-K)."""
    efficiency: float = Field(gt=0)
    """Share of the peak that the largest tile reaches with all compute units busy."""
    wave_quantisation: float = Field(ge=0, le=1)
    """1: the last wave costs a whole one; 0: work is spread evenly (stream-K)."""
    k_overhead: float = Field(ge=0)
    """Prologue and epilogue of a tile, in elements of k."""
    small_tile_penalty: float = Field(ge=0)
    """Extra time a unit of operand traffic above the largest tile's."""
    split_start: Seconds
    """Joining the parts of a split k, seconds."""
    k_latency: Seconds
    """Serial latency of the loop over k, seconds an element of k."""
    throttle: float = Field(ge=0)
    """Share by which a long kernel is slower than a short one, as clocks fall."""
    throttle_time: Seconds
    """Duration at which half of `throttle` is reached, seconds."""
    memory_efficiency: float = Field(gt=0)
    """Share of the nominal memory bandwidth that operands stream at."""
    start: Seconds
    """Of an empty kernel, seconds."""
    accumulate_factor: float = Field(default=1.0, gt=0)
    """Compute time of a weight gradient accumulated in fp32 over one that is not."""
    layout_factor: dict[GemmLayout, float] = Field(default_factory=dict)
    """Compute time of a layout over the forward layout; 1 where it is not named."""
    sustained_factor: float = Field(default=1.0, gt=0)
    """Compute time of GEMMs without end over that of one long burst."""
    grouped_factor: float = Field(default=1.0, gt=0)
    """Compute time of a grouped GEMM (experts of a rank) over that of one batched GEMM."""
    cast: CastConstants | None = None
    """Casting the activations to this dtype; None where no cast was measured."""


class AttentionConstants(FileRecord):
    """Fused (flash) attention on one accelerator (`simulator.cost.attention`)."""

    query_tile: int = Field(ge=1)
    """Query rows of one block."""
    efficiency: float = Field(gt=0)
    """Share of the peak that the two matrix products of a block reach."""
    softmax_flops: float = Field(ge=0)
    """Softmax work of one score, in FLOPs at the peak that take as long."""
    k_overhead: float = Field(ge=0)
    """Prologue and epilogue of a query block, in keys."""
    tail: float = Field(ge=0)
    """Blocks, of the longest kind, that run while other compute units are idle."""
    memory_efficiency: float = Field(gt=0)
    """Share of the nominal memory bandwidth that operands stream at."""
    start: Seconds
    """Of an empty kernel, seconds."""
    backward_factor: float = Field(ge=1)
    """Compute time of the backward pass over that of the forward pass."""
    sustained_factor: float = Field(default=1.0, gt=0)
    """Compute time in a training run over compute time in a short burst."""
    cache_efficiency: float = Field(default=1.0, gt=0)
    """Share of the nominal memory bandwidth at which an inference cache is written."""
    cache_token: Seconds = 0.0
    """Writing a token to an inference cache, besides its bytes, seconds."""


class MemoryClass(StrEnum):
    """Operators that move bytes and compute little."""

    POINTWISE = "pointwise"
    """Activations, additions, dropout, rotary embedding."""
    NORM = "norm"
    """LayerNorm and RMSNorm."""
    SOFTMAX = "softmax"
    """Unfused softmax with scale and mask."""
    CROSS_ENTROPY = "cross_entropy"
    """Cross entropy over the vocabulary."""
    EMBEDDING = "embedding"
    """Table look-up and its scatter-add."""
    OPTIMIZER = "optimizer"
    """Fused multi-tensor optimizer step."""
    COPY = "copy"
    """Copies, casts and transposes on the device."""


class MemoryBoundConstants(FileRecord):
    """Memory-bound operators on one accelerator (`simulator.cost.memory_bound`)."""

    start: Seconds
    """Of an empty kernel, device time, seconds."""
    efficiency: dict[MemoryClass, float]
    """Share of the nominal memory bandwidth that operators of a class stream at."""

    @field_validator("efficiency")
    @classmethod
    def _names_every_class(cls, value: dict[MemoryClass, float]) -> dict[MemoryClass, float]:
        missing = [kind.value for kind in MemoryClass if kind not in value]
        if missing:
            raise ValueError(f"needs a value for: {', '.join(missing)}")
        if not all(0 < share <= 1 for share in value.values()):
            raise ValueError("must be above 0 and at most 1")
        return value
