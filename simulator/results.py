"""Plain records that results are made of; everything a caller may want is in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf


class Category(StrEnum):
    """What the time of the busiest stage goes into; the categories add up to the step."""

    GEMM = "gemm"
    ATTENTION = "attention"
    MEMORY_BOUND = "memory_bound"
    RECOMPUTE = "recompute"
    LAUNCH = "launch"
    """GPU waits for the CPU to launch kernels."""
    TENSOR_COMM = "tensor_comm"
    CONTEXT_COMM = "context_comm"
    EXPERT_COMM = "expert_comm"
    """Waiting for tokens on their way to experts and back."""
    HOST_COMM = "host_comm"
    """Waiting for activations or optimizer states on their way to or from host memory."""
    PIPELINE_COMM = "pipeline_comm"
    BUBBLE = "bubble"
    """Waiting for another stage."""
    DATA_COMM = "data_comm"
    """Waiting for gradients or parameters."""
    OPTIMIZER = "optimizer"


_COMMUNICATION = (
    Category.TENSOR_COMM,
    Category.CONTEXT_COMM,
    Category.EXPERT_COMM,
    Category.HOST_COMM,
    Category.PIPELINE_COMM,
    Category.DATA_COMM,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Seconds of one stage's step by category."""

    stage: int
    seconds: Mapping[Category, float]

    @property
    def total(self) -> float:
        """The step time, seconds."""
        return sum(self.seconds.values())

    @property
    def exposed_communication(self) -> float:
        """Seconds in which the stage waits for communication."""
        return sum(self.seconds.get(kind, 0.0) for kind in _COMMUNICATION)

    @property
    def bubble(self) -> float:
        """Seconds in which the stage waits for another stage."""
        return self.seconds.get(Category.BUBBLE, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Bytes of one rank of a stage at its peak."""

    stage: int
    first_rank: int
    """The stage's first global rank."""
    last_rank: int
    """Its last one; all ranks between are like it."""
    weights: float
    gradients: float
    optimizer: float
    activations: float
    """Kept for the backward pass by all micro-batches in flight."""
    transient: float
    """Alive only at the peak: recomputed activations, gathered parameters."""
    logits: float
    fragmentation: float
    """Reserved by the allocator above what is allocated."""
    context: float
    """Outside the allocator: CUDA context, NCCL buffers."""
    moment: str
    """When the peak is reached."""
    expert_weights: float = 0.0
    """Part of `weights`: routed experts, of which a rank holds 1 / (ep x etp)."""
    expert_gradients: float = 0.0
    """Part of `gradients`."""
    expert_optimizer: float = 0.0
    """Part of `optimizer`."""
    host: float = 0.0
    """Bytes of host memory: offloaded activations and optimizer states. Not on the device."""

    @property
    def allocated(self) -> float:
        """Bytes that tensors take at the peak (`max_memory_allocated`)."""
        states = self.weights + self.gradients + self.optimizer
        return states + self.activations + self.transient + self.logits

    @property
    def reserved(self) -> float:
        """Bytes that the device has lost to this rank, all in all."""
        return self.allocated + self.fragmentation + self.context


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One bar of a timeline: [start, stop) seconds on one stream of one stage."""

    stage: int
    stream: str
    name: str
    start: float
    stop: float
    micro_batch: int | None = None
    chunk: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorUse:
    """What one rank spends on one operator or collective in a step, by itself."""

    name: str
    phase: str
    """The pass that runs it: forward, backward or recompute."""
    category: Category
    calls: float
    flops: float
    """Of all calls, as the matrix units run them; 0 for what has none."""
    bytes: float
    """To and from device memory, of all calls, each tensor once; 0 for collectives."""
    seconds: float
    """Of all calls, hidden or not."""
    exposed: float
    """By which they make the step's passes longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCurve:
    """Bytes that tensors of one rank of a stage take: `allocated[i]` from `times[i]` on."""

    stage: int
    times: tuple[float, ...]
    """Seconds from the start of the step, rising."""
    allocated: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCurve:
    """The load of a link over a step: `rates[i]` bytes/s from `times[i]` to `times[i + 1]`."""

    times: tuple[float, ...]
    """Seconds from the start of the step, rising; one more than there are rates."""
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkUse:
    """Links of the network that carry the same, one direction each."""

    name: str
    """Of one of them."""
    links: tuple[int, ...]
    """All that are alike, by their numbers in the topology."""
    capacity: float
    """Bytes/s of one."""
    carried: float
    """Bytes that one carries in the step: gradients, parameters, activations, and inside passes."""
    full: float | None
    """Share of the step in which it is full; None where that was not recorded."""
    load: LoadCurve | None = None
    """All that one carries over time, traffic of others and of storage included, in the step that
    was played last; None where that was not recorded."""

    @property
    def count(self) -> int:
        """Links alike."""
        return len(self.links)

    def utilisation(self, step_time: float) -> float:
        """Return bytes carried over what it could carry in the step."""
        return self.carried / (self.capacity * step_time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something of the cluster that makes the step longer."""

    what: str
    """Links by name, or a slow rank."""
    seconds: float
    """By which the step would be shorter without it, all else being as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What a number was computed from."""

    traincast: str
    """Version."""
    profile: str
    profile_sha256: str
    stack: str
    seed: int | None
    constants: Mapping[str, str]
    """For each block of constants whether it is nominal, fitted or measured, and from what."""
    used: tuple[str, ...] = ()
    """The blocks that the forecast needs."""
    validation: str = ""
    """What the interval of the step time was taken from."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """One forecast step."""

    step_time: float
    """Seconds."""
    low: float
    """Lower end of the 80 % interval, seconds."""
    high: float
    """Upper end of the 80 % interval, seconds."""
    tokens: int
    """Tokens of the step, all ranks."""
    world_size: int
    model_flops: float
    """FLOP of the step over all ranks: three times the forward pass (frozen weights without their
    weight gradients), attention without its causal mask, recomputation not counted."""
    hardware_flops: float
    """FLOP that the matrix units really run, with recomputation, under the causal mask: below
    `model_flops` where sequences are long and little is recomputed."""
    peak_flops: float
    """Dense peak of one accelerator at the job's precision, FLOP/s."""
    breakdown: Breakdown
    memory: tuple[MemoryUse, ...]
    """One entry a stage."""
    memory_capacity: float
    """Bytes of one accelerator; in a mixed cluster of the smallest that a stage stands on."""
    stage_capacity: tuple[float, ...] = ()
    """Bytes of an accelerator of each stage, in a mixed cluster; empty where all have the same."""
    host_capacity: float = inf
    """Bytes of host memory of one accelerator's share of a node."""
    links: tuple[LinkUse, ...] = ()
    """Of the network behind the NICs, busiest first; empty where none was described."""
    causes: tuple[Cause, ...] = ()
    """Links and slow ranks that cost most, where that was asked for."""
    drawn: tuple[float, ...] = ()
    """Seconds of each step that was drawn at random; `step_time` is their mean."""
    played: int | None = None
    """Kinds of data-parallel replicas that were played apart; None where all are alike."""
    events: int = 0
    """Events the engine processed; 0 for an estimate, and where all tasks take a known time."""
    tasks: int = 0
    """Tasks of the step that the engine timed, of all replicas played; 0 for an estimate."""
    played_tasks: int = 0
    """Those of them that were played event by event, since others could lengthen them; each of the
    others takes as long as alone, whatever the rest does."""
    spans: tuple[Span, ...] = ()
    breakdowns: tuple[Breakdown, ...] = ()
    """Of every stage, where there are spans."""
    provenance: Provenance

    @property
    def tokens_per_second(self) -> float:
        """Tokens a second, all ranks."""
        return self.tokens / self.step_time

    @property
    def mfu(self) -> float:
        """Model FLOPs utilisation: model FLOP over what the dense peak could do in the step."""
        return self.model_flops / (self.peak_flops * self.world_size * self.step_time)

    @property
    def hfu(self) -> float:
        """Hardware FLOPs utilisation."""
        return self.hardware_flops / (self.peak_flops * self.world_size * self.step_time)

    @property
    def peak_memory(self) -> float:
        """Reserved bytes of the fullest stage."""
        return max(use.reserved for use in self.memory)

    @property
    def fits(self) -> bool:
        """Whether every stage fits in the accelerator's memory, what is offloaded in the host's."""
        room = self.stage_capacity or (self.memory_capacity,) * len(self.memory)
        fit = all(use.reserved <= most for use, most in zip(self.memory, room, strict=True))
        return fit and self.host_memory <= self.host_capacity

    @property
    def host_memory(self) -> float:
        """Bytes of host memory of a rank of the stage that uses most."""
        return max(use.host for use in self.memory)
