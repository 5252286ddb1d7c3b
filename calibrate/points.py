"""What can be measured: one record a kind of point, the same for plans, measurements and imports.

Sizes follow the simulator: bytes, seconds, elements. Two points are the same measurement if they
are equal; `key` is their canonical text.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from simulator.files import FileRecord
from simulator.hardware.accelerator import Dtype
from simulator.hardware.kernel_constants import GemmLayout, MemoryClass
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout
from simulator.workload.job import TrainingJob
from simulator.workload.stack_choices import KernelClass

_Count = Annotated[int, Field(ge=1)]


class GemmPoint(FileRecord):
    """One (m, k) by (k, n) product, averaged over runs back to back."""

    what: Literal["gemm"] = "gemm"
    dtype: Dtype
    m: _Count
    n: _Count
    k: _Count
    layout: GemmLayout = GemmLayout.FORWARD
    accumulate: bool = False
    """Added to a float32 output."""
    sustained: bool = False
    """Timed after seconds of the same load, so that clocks have settled; else as one burst."""
    ranks: _Count = 1
    """Processes that ran it at the same time, each on its own device; the slowest is timed."""


class AttentionPoint(FileRecord):
    """One fused attention call (`scaled_dot_product_attention`)."""

    what: Literal["attention"] = "attention"
    dtype: Dtype
    batch: _Count
    seq: _Count
    heads: _Count
    kv_heads: _Count
    head_dim: _Count
    causal: bool = True
    backward: bool = False
    """The backward pass alone; else the forward pass."""


class MemoryBoundPoint(FileRecord):
    """One memory-bound operator on tensors of `bytes` moved in all (reads and writes)."""

    what: Literal["memory_bound"] = "memory_bound"
    operator: str
    """As the measuring module names it: "add", "gelu", "layer_norm", "adamw", ..."""
    memory_class: MemoryClass
    dtype: Dtype
    bytes: float = Field(gt=0)
    """Read and written by its kernels, each element once a kernel."""
    ranks: _Count = 1
    """As of a product."""


class Direction(StrEnum):
    """Of a copy between host memory and a device."""

    TO_DEVICE = "to_device"
    TO_HOST = "to_host"


class HostCopyPoint(FileRecord):
    """One copy between pinned host memory and a device."""

    what: Literal["host_copy"] = "host_copy"
    direction: Direction
    bytes: float = Field(gt=0)


class Launch(StrEnum):
    """What the CPU launches."""

    KERNEL = "kernel"
    COLLECTIVE = "collective"


class LaunchPoint(FileRecord):
    """CPU time to launch one kernel or one collective of the smallest size."""

    what: Literal["launch"] = "launch"
    launch: Launch


class SoakPoint(FileRecord):
    """A large GEMM for `duration` seconds, until clocks and temperature have settled."""

    what: Literal["soak"] = "soak"
    dtype: Dtype
    duration: float = Field(gt=0)
    """Seconds."""


class Timing(StrEnum):
    """How a collective is timed."""

    DEVICE = "device"
    """Many calls back to back, events or wall clock around all of them."""
    ISOLATED = "isolated"
    """A barrier before each call, each timed alone."""
    APART = "apart"
    """Each rank starts a random time behind a barrier; timed on the rank that starts last, from its
    start to its end: what a call takes in a training step, where ranks never arrive together."""


class GroupKind(StrEnum):
    """Which ranks take part; every pattern partitions some or all ranks into groups."""

    FIRST = "first"
    """The first `ranks` ranks of the world (of the first node where they fit)."""
    ONE_A_NODE = "one_a_node"
    """Local rank 0 of every node."""
    HALVES = "halves"
    """Two halves of the world, both at work at the same time; ranks counts one of them."""
    RAILS = "rails"
    """One group a local rank, all at work at the same time; ranks counts one of them."""
    PAIR = "pair"
    """Ranks `first` and `second` alone."""


class CollectivePoint(FileRecord):
    """One collective of `bytes` (nccl-tests convention: see `CommPlan`) over a group."""

    what: Literal["collective"] = "collective"
    collective: Collective
    ranks: int = Field(ge=2)
    """Of one group."""
    nodes: _Count
    """Nodes that one group spans."""
    bytes: float = Field(gt=0)
    dtype: str = "float32"
    timing: Timing = Timing.DEVICE
    group: GroupKind = GroupKind.FIRST
    first: int | None = None
    second: int | None = None
    in_place: bool | None = None
    """As a log says; None where it does not matter."""


class InterferencePoint(FileRecord):
    """A kernel of a class and a collective at the same time on the same device."""

    what: Literal["interference"] = "interference"
    kernel: KernelClass
    collective: Collective
    ranks: int = Field(ge=2)
    bytes: float = Field(gt=0)


class LayerPart(StrEnum):
    """A part of a model that is timed by itself."""

    LAYER = "layer"
    EMBEDDING = "embedding"
    HEAD = "head"
    """Final norm, output projection and loss."""
    OPTIMIZER = "optimizer"
    """The update of one layer's parameters."""


class LayerPoint(FileRecord):
    """Forward and backward pass over one part of a model as PyTorch runs it, on one device."""

    what: Literal["layer"] = "layer"
    part: LayerPart
    model: str
    """A preset or a path, as in a scenario."""
    micro_batch: _Count
    seq: _Count
    tp: _Count = 1
    """The part as one of `tp` ranks holds it, without its collectives."""
    dtype: Dtype
    backward: bool = False
    ranks: _Count = 1
    """Processes that ran it at the same time; the slowest is timed. What they share (the cores of a
    host, its memory, power) is then as busy as in training."""


class Upkeep(StrEnum):
    """What PyTorch does for each parameter of a layer beside the layer's passes."""

    GATHER = "gather"
    """FSDP2 gathers the layer for one pass: copies into and out of the collective's buffer."""
    SHARDED = "sharded"
    """FSDP2 gathers it for either pass, and reduces its gradients."""
    BUCKETS = "buckets"
    """DDP copies its gradients into a bucket, scales them, and copies them back."""
    UPDATE = "update"
    """Fused AdamW on what a rank keeps of it: DTensors, with tp or dp."""


class UpkeepPoint(FileRecord):
    """One kind of work on the parameters of a model's first layer, on one device.

    The rank is one of tp x dp of which the others do not exist: no byte leaves it. An update with
    `dp` is that of FSDP2's shards.
    """

    what: Literal["upkeep"] = "upkeep"
    work: Upkeep
    model: str
    """A preset or a path, as in a scenario."""
    tp: _Count = 1
    dp: _Count = 1
    dtype: Dtype
    ranks: _Count = 1
    """As of a product."""

    @model_validator(mode="after")
    def _has_peers(self) -> Self:
        if self.dp == 1 and self.work is not Upkeep.UPDATE:
            raise ValueError(f"{self.work} is between data ranks, so that dp must be at least 2")
        if self.tp > 1 and self.work is Upkeep.BUCKETS:
            raise ValueError("DDP takes no tensor-parallel parameters, so that tp must be 1")
        return self


class StepPoint(FileRecord):
    """Whole training steps of a model with a layout, run by PyTorch."""

    what: Literal["step"] = "step"
    model: str
    """A preset or a path, as in a scenario."""
    layers: _Count | None = None
    """Layers of it that are run; None is all."""
    job: TrainingJob
    layout: ParallelLayout
    ranks: _Count = 1
    """Processes that each ran it by itself at the same time; layouts of one rank only."""
    bucket_bytes: float | None = None
    """Of DDP's gradient buckets, the first included; None is PyTorch's default: one of 1 MiB,
    then 25 MiB."""


class KernelSumPoint(FileRecord):
    """All time of one class of kernels in one training step, read off a profiler's trace."""

    what: Literal["kernel_sum"] = "kernel_sum"
    kernel: str
    """"gemm", "attention", "memory_bound", "collective", "copy" or "other"."""
    step: int = Field(ge=0)
    rank: int | None = None


Point: TypeAlias = Annotated[
    GemmPoint
    | AttentionPoint
    | MemoryBoundPoint
    | HostCopyPoint
    | LaunchPoint
    | SoakPoint
    | CollectivePoint
    | InterferencePoint
    | LayerPoint
    | UpkeepPoint
    | StepPoint
    | KernelSumPoint,
    Field(discriminator="what"),
]


def key_of(point: Point) -> str:
    """Return the canonical text of a point: equal for equal points, and only for them."""
    return point.model_dump_json(exclude_defaults=False)
