"""A training stack: what a software framework does with the same model on the same machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from simulator.errors import InputError, Problem
from simulator.files import FileRecord, nearest, read_record
from simulator.units import Bytes, Seconds
from simulator.workload.stack_choices import (
    AttentionKernel,
    KernelClass,
    PartitionRule,
    Recompute,
    RecomputeMethod,
    RecomputeModule,
    ScheduleName,
    SelectiveRecompute,
)

STACK_FOLDER = Path(__file__).resolve().parent / "stacks"
_ZeroStage = Annotated[int, Field(ge=0, le=3)]


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
    keeps_projection: bool = False
    """Whether the queries that attention keeps are a view of one tensor with keys and values, of
    which other copies are kept, where there are as many key-value heads as query heads."""
    repeats_kv: bool = False
    """Whether key and value heads are repeated, one for each query head, before context-parallel
    ranks exchange them."""
    prunes_recompute: bool = False
    """Whether the last product of a recomputed MLP is left out, as no gradient needs its result
    (XLA); PyTorch runs a checkpointed module again to its end."""
    accumulate_bytes: float = Field(default=0.0, ge=0)
    """Bytes moved a parameter and micro-batch to add a weight gradient outside its GEMM."""
    fused_loss: bool = False
    """Cross-entropy in one kernel a pass, instead of a chain of pointwise ones."""
    logits_passes: float = Field(gt=0)
    """Times the logits are read or written, forward and backward together, in 4-byte elements."""
    logits_bytes: float = Field(gt=0)
    """Bytes alive a logit when the loss is computed."""
    grouped_gemm: bool = True
    """Whether the experts of a rank run as one grouped GEMM, not one after another."""
    grouped_waves: bool = True
    """Whether the tiles of all its products fill the GPU together; false where each product is a
    kernel with a last wave of its own."""
    fused_permute: bool = True
    """Whether tokens are permuted for their experts, and back, in one kernel each way."""
    fused_clamp: bool = True
    """Whether experts' gate and value are clamped inside the activation's kernel."""
    fused_expert_bias: bool = True
    """Whether the bias of the experts' outputs is added inside their product, not by kernels for
    each expert."""
    memory_factor: float = Field(default=1.0, gt=0)
    """Time of this stack's memory-bound kernels over that of the accelerator's best ones."""
    eager_factor: float = Field(default=1.0, gt=0)
    """The same, on top of it, of kernels that the framework runs one by one on strided tensors or
    mixed dtypes where others fuse: the experts' clamp and bias."""
    cpu_launch: Seconds
    """CPU time to launch one kernel; a layer takes at least its launches x this."""
    cpu_collective: Seconds
    """CPU time to launch one collective."""
    cpu_experts: Seconds = 0.0
    """CPU time of one pass over a mixture of experts beside its launches: what router, dispatcher
    and the modules of each expert do before they launch anything."""


class Overlap(FileRecord):
    """Which communication the stack hides behind compute."""

    gradient_reduce: bool
    """Gradient buckets are reduced while the last backward pass runs."""
    parameter_gather: bool
    """ZeRO-1 parameters are gathered while the first forward pass runs."""
    pipeline_send: bool
    """Pipeline transfers run while the next micro-batch computes."""
    pipeline_receive: bool = True
    """A stage's receives are posted before it needs them; false where it asks, and waits, for each
    when it comes to it, and nothing is sent before it does; `pipeline_send` then counts for
    nothing."""
    send_after_reduce: bool = False
    """A stage whose backward pass reduces gradients hands its input gradient on only when all of
    them are reduced (DDP ends its backward pass by waiting for them)."""
    pipeline_slices: bool = True
    """Each tp rank sends its slice of an activation, and the receivers gather them."""
    tensor_backward: bool
    """The input-gradient collective hides behind the weight-gradient GEMM."""
    tensor_fraction: float = Field(default=0.0, ge=0, le=1)
    """Share of a tensor-parallel collective that its own GEMM hides (user buffers), fitted."""
    tensor_chunks: int = Field(default=1, ge=1, le=64)
    """Chunks in which a tensor-parallel collective and its own GEMM are pipelined (async tensor
    parallelism), in place of `tensor_fraction`: all but the first chunk can hide."""
    sharded: bool = True
    """FSDP's gathers and reductions run beside compute; false where each of them blocks (PyTorch
    on a device without streams)."""
    reduces_once: bool = False
    """In a pipeline, FSDP keeps what a backward pass gathered until a forward pass has used it, and
    reduces gradients once, behind the last backward pass (torch.distributed.pipelining), instead of
    gathering and reducing in every pass."""
    prefetch: int = Field(default=1, ge=0, le=16)
    """FSDP units gathered ahead of the one that computes."""
    expert_fraction: float = Field(default=0.0, ge=0, le=1)
    """Share of an expert-parallel collective that the compute of another micro-batch hides
    (batch-level overlap of 1F1B or DualPipe)."""
    shared_expert: bool = False
    """Whether the shared expert runs beside the dispatch of the routed ones."""
    compute_slowdown: dict[KernelClass, Annotated[float, Field(ge=1, le=10)]] = Field(
        default_factory=dict
    )
    """Kernel class -> time of compute while communication runs on the same GPU over its time
    alone (k); 1 where it is not named. Only the event engine and collectives inside a layer see
    it."""
    comm_slowdown: float = Field(default=1.0, ge=1, le=10)
    """Time of communication while compute runs on the same GPU over its time alone (m)."""

    @field_validator("tensor_chunks")
    @classmethod
    def _is_the_only_share(cls, value: int, info: ValidationInfo) -> int:
        if value > 1 and info.data.get("tensor_fraction"):
            raise ValueError("says the same as tensor_fraction; leave one of the two out")
        return value


class Offload(FileRecord):
    """What the stack can move to host memory."""

    activations: bool = False
    """Whether activations of whole layers can wait there (pp = 1)."""
    with_recompute: bool = False
    """Whether offloaded layers may also recompute."""
    optimizer: bool = False
    """Whether optimizer states can live, and be updated, there (ZeRO stage 1 and up)."""
    optimizer_overlap: bool = True
    """Whether gradients going down, the update on either side and parameters coming back run at
    the same time, bucket by bucket, not one after another."""
    host_efficiency: float = Field(default=0.5, gt=0, le=1)
    """Share of the host's nominal memory bandwidth that the update on the CPU reaches."""


class Numerics(FileRecord):
    """Dtypes and bytes a parameter."""

    parameter_bytes: float = Field(gt=0)
    """Of the copy that the matrix products read (2 in bf16)."""
    gradient_bytes: float = Field(gt=0)
    """Of the accumulated gradient."""
    master_bytes: float = Field(ge=0)
    """Of the optimizer's own copy of the parameter; 0 where it updates the parameter itself."""
    keeps_sharded: bool = False
    """Whether ZeRO-3 keeps the sharded parameters beside their masters (DeepSpeed), not the masters
    alone, cast for each gather (FSDP)."""
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
    fp8: dict[str, float] = Field(default_factory=dict)
    """Accelerator-constants name -> time of the stack's fp8 matrix products over that of the
    kernels which the constants were fitted on; on top of `scale`."""
    fp4: dict[str, float] = Field(default_factory=dict)
    """The same for fp4."""
    grouped: dict[str, float] = Field(default_factory=dict)
    """The same for grouped products of experts, in any precision; on top of the others."""
    free: tuple[str, ...] = ()
    """Constants that were fitted: "scale", "attention", "fp8", "fp4", "grouped", for all
    accelerators of the rows or for one as in "scale.gb200", or keys such as
    "kernels.memory_factor"."""
    rows: tuple[str, ...] = Field(default=(), max_length=10)
    """Ids of the step rows used; they never count as validation."""
    spread: float = Field(default=0.08, gt=0, lt=1)
    """The 80 % interval of a step time t is t / (1 + spread) to t (1 + spread)."""
    spread_source: str
    """Where `spread` comes from."""
    layout_spread: float | None = Field(default=None, gt=0, lt=1)
    """The same of the error that layouts of one job do not share; None where no grid of them was
    measured."""
    layout_spread_source: str = ""
    """Where `layout_spread` comes from."""


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
    custom_partition: bool = False
    """Whether it can be told how many layers each stage takes."""
    bucket_parameters: int = Field(default=40_000_000, ge=1)
    """Parameters a gradient bucket."""
    first_bucket_parameters: int | None = Field(default=None, ge=1)
    """Parameters at which the bucket that is ready first closes (DDP); then buckets are filled
    from the head backwards, and embedding and head can be buckets, or FSDP units, of their own.
    None: they go with the last and the first layer."""
    zero_stages: tuple[_ZeroStage, ...] = (0, 1)
    """ZeRO stages that the stack offers."""
    zero_stages_with_pipeline: tuple[_ZeroStage, ...] = (0, 1)
    """Those that it combines with pp > 1."""
    sequence_parallel: bool = True
    """Whether it can split norms and residuals over tp along the sequence."""
    recompute: tuple[Recompute, ...] = tuple(Recompute)
    """What it can recompute."""
    schedules: tuple[ScheduleName, ...] = tuple(ScheduleName)
    """Pipeline schedules that it offers."""
    selective: SelectiveRecompute = SelectiveRecompute.MODULES
    recompute_modules: tuple[RecomputeModule, ...] = tuple(RecomputeModule)
    """What its selective recomputation can name."""
    recompute_methods: tuple[RecomputeMethod, ...] = tuple(RecomputeMethod)
    """How its full recomputation can choose layers; none where it always takes all."""
    offload: Offload = Offload()
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
