"""A plan file: what to measure, section by section; what is left out is not measured.

A plan serves every machine: shapes grow to what the device does in `sizes.run` and holds in
`sizes.memory`, and sizes that a machine cannot do are left out. `calibrate.plan` turns it into
points.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from calibrate.limits import Limits
from calibrate.operators import Operator
from calibrate.plan_groups import (
    MOST_COUNT,
    MOST_POINTS,
    ApartPlan,
    CollectivePlan,
    InterferencePlan,
    PairPlan,
)
from calibrate.points import LayerPart
from simulator.files import FileRecord
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ParallelLayout
from simulator.units import GB, KIB, MIB, MS, Bytes, Seconds
from simulator.workload.job import TrainingJob

_MOST_MICRO_BATCH, _MOST_TP = 4096, 4096
"""The second is what a layout may have; the first leaves room for one a rank in a global batch."""
_Count = Annotated[int, Field(ge=1, le=MOST_COUNT)]
_MicroBatch = Annotated[int, Field(ge=1, le=_MOST_MICRO_BATCH)]
_Tp = Annotated[int, Field(ge=1, le=_MOST_TP)]
_Dp = Annotated[int, Field(ge=2, le=_MOST_TP)]
_Some = Annotated[int, Field(ge=0, le=MOST_POINTS)]
_Factor = Annotated[int, Field(ge=2, le=MOST_COUNT)]
_Dtypes = tuple[Dtype, ...]


class Sizes(FileRecord):
    """What one run may take; it keeps a plan within its time on a slow device."""

    run: Seconds = 200 * MS
    """Longest kernel, at the speed of a quick product and a quick copy."""
    memory: float = Field(default=0.5, gt=0, lt=1)
    """Share of the free memory that the tensors of one point may take."""


class ModelPlan(FileRecord):
    """The model whose own shapes come first."""

    default: tuple[str, ...] = Field(min_length=1)
    """Presets or paths, tried in order where none is asked for: the first of which a layer runs
    in `sizes.run` is taken, else the last."""
    seq_length: _Count = 4096
    """Tokens of a sequence; no more than the model has positions, and halved until a layer's
    forward pass runs in `sizes.run`."""
    micro_batches: tuple[_MicroBatch, ...] = (1,)
    tp: tuple[_Tp, ...] = (1,)
    """Tensor-parallel sizes whose local shapes are measured; those that the model cannot be cut
    into are left out."""


class GemmPlan(FileRecord):
    """Matrix products."""

    dtypes: _Dtypes = ()
    """Those of them that the device takes; empty is its main one, bf16 or else fp32."""
    model: bool = True
    """The products of the model's layers and head, in all three layouts."""
    accumulate: bool = True
    """Weight gradients of the model once more, added to a float32 output (not of 8 bits)."""
    sustained: _Some = 0
    """Of the model's products, largest first, once more behind the soak."""
    spread: _Some = 0
    """Shapes spread evenly over the logarithms of m, n and k, in all layouts in turn."""
    least: _Count = 256
    """Of m, n and k of the spread shapes."""
    most: _Count = 16384
    multiple: _Count = 64
    """Of which m, n and k of the spread shapes are."""


class AttentionPlan(FileRecord):
    """Fused attention."""

    dtypes: _Dtypes = ()
    """As those of GEMMs."""
    model: bool = True
    """The shapes of the model."""
    spread: _Some = 0
    """Causal shapes over sequence lengths, heads and widths of heads."""
    batch: tuple[_Count, ...] = (1, 2, 4)
    seq: tuple[_Count, ...] = (1024, 2048, 4096, 8192, 16384)
    heads: tuple[_Count, ...] = (8, 16, 32, 64)
    group: tuple[_Count, ...] = (1, 4, 8)
    """Query heads a key-value head."""
    head_dim: tuple[_Count, ...] = (64, 128)
    backward: bool = True


class MemoryPlan(FileRecord):
    """Memory-bound operators."""

    operators: tuple[Operator, ...] = tuple(Operator)
    """First one a class is measured at all sizes x `factor`, then the others, then in between."""
    dtypes: _Dtypes = ()
    least: Bytes = Field(default=MIB, gt=0)
    """Of the bytes moved."""
    most: Bytes = 4 * GB
    factor: _Factor = 16
    between: _Some = 0
    """Sizes between two of those, later in the plan."""


class CopyPlan(FileRecord):
    """Copies between host and device."""

    least: Bytes = Field(default=64 * KIB, gt=0)
    most: Bytes = 1 * GB
    factor: _Factor = 64


class SoakPlan(FileRecord):
    """Load until clocks have settled."""

    duration: Seconds = Field(gt=0)


class LayersPlan(FileRecord):
    """Parts of the model as PyTorch runs them."""

    parts: tuple[LayerPart, ...] = tuple(LayerPart)
    micro_batches: tuple[_MicroBatch, ...] = ()
    """Empty: those of the model."""
    tp: tuple[_Tp, ...] = ()
    """Empty: those of the model."""
    dp: tuple[_Dp, ...] = ()
    """Data ranks between which a layer's parameters are spread, or that have copies of them. For
    each, and each `tp`, what FSDP2, DDP and the update cost beside the passes is measured; for
    `tp` alone the update. Empty: nothing of it."""
    ranks: Literal["one", "all"] = "one"
    """One process alone, or all at the same time, of which the slowest counts. All is what training
    sees where ranks share the cores of a host, its power or its cooling; `tp` must divide them."""


class StragglersPlan(FileRecord):
    """Kernels that all ranks run at the same time, to find the slow ones of them."""

    sustained: _Some = 2
    """Products of the model, largest first, under lasting load."""
    memory_bound: bool = True
    """One sum of two tensors, as large as those of `[memory_bound]` may be."""


class TrainingPlan(FileRecord):
    """Real training steps of the first layers of the model, on one device and by all."""

    layers: tuple[_Count, ...] = (2, 4)
    micro_batches: tuple[_MicroBatch, ...] = (1,)
    ranks: Literal["one", "all"] = "one"
    """Whether one rank runs those on one device, or every rank its own at the same time, as with
    `[layers]`."""
    all_ranks: bool = False
    """The same once more under data parallelism on all ranks."""
    stack: str = "pytorch-eager"
    """A stack file, for the forecast that the step is compared with."""
    cpu_stack: str = "pytorch-gloo"
    """The same where ranks are CPUs."""


class StepPlan(FileRecord):
    """One training step on all ranks, as in a scenario."""

    model: str | None = None
    """None: the model of the plan."""
    layers: _Count | None = None
    """Of it; None is all."""
    job: TrainingJob
    layout: ParallelLayout
    """dp may be left out, and is then what fills the world."""
    bucket_bytes: Bytes | None = None


class Plan(FileRecord):
    """What to measure on a machine; sections that are left out are not measured."""

    title: str = ""
    limits: Limits = Limits()
    sizes: Sizes = Sizes()
    model: ModelPlan | None = None
    """Needed where a section measures the model, unless one is named on the command line."""
    launch: bool = False
    """CPU time to launch a kernel and, with several ranks, a collective."""
    gemm: GemmPlan | None = None
    attention: AttentionPlan | None = None
    memory_bound: MemoryPlan | None = None
    host_copy: CopyPlan | None = None
    soak: SoakPlan | None = None
    layers: LayersPlan | None = None
    training: TrainingPlan | None = None
    stragglers: StragglersPlan | None = None
    collectives: CollectivePlan | None = None
    apart: ApartPlan | None = None
    pairs: PairPlan | None = None
    interference: InterferencePlan | None = None
    step: tuple[StepPlan, ...] = ()
