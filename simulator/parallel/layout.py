"""A parallel layout in Megatron's names, and where its process groups lie on the cluster."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Self

from pydantic import Field

from simulator.files import FileRecord
from simulator.parallel.domains import Domains, group_shape
from simulator.parallel.groups import GroupShape
from simulator.parallel.placement import PipelineShape, Placement, pipeline_of, placement_of
from simulator.workload.stack_choices import (
    Recompute,
    RecomputeMethod,
    RecomputeModule,
    ScheduleName,
)

__all__ = [
    "ZERO_GRADIENTS",
    "ZERO_PARAMETERS",
    "ZERO_STATES",
    "Axis",
    "ContextExchange",
    "DataParallel",
    "ParallelLayout",
    "PipelineShape",
    "Placement",
    "Recompute",
    "RecomputeMethod",
    "RecomputeModule",
    "ScheduleName",
    "axis_group",
    "stage_pair",
]


ZERO_STATES, ZERO_GRADIENTS, ZERO_PARAMETERS = 1, 2, 3
"""ZeRO stages: what is sharded over the data ranks, on top of the stages below."""


class Axis(StrEnum):
    """A parallel axis."""

    TENSOR = "tp"
    CONTEXT = "cp"
    DATA = "dp"
    PIPELINE = "pp"
    EXPERT = "ep"
    EXPERT_TENSOR = "etp"
    EXPERT_DATA = "edp"
    HOST = "host"
    """Not an axis of ranks: traffic between a GPU and its host memory."""


class DataParallel(StrEnum):
    """How replicas are kept equal."""

    ALL_REDUCE = "all-reduce"
    """DDP and ZeRO: gradients are reduced over the data-parallel group."""
    PARAMETER_SERVER = "parameter-server"
    """Gradients are reduced to one central rank, which broadcasts the parameters."""
    LOCAL_SGD = "local-sgd"
    """Replicas step alone and average their parameters every `sync_every` steps."""


class ContextExchange(StrEnum):
    """How context-parallel ranks reach each other's keys and values, in Megatron-LM's words."""

    RING = "p2p"
    """Keys and values go round, half causal blocks balanced over the ranks (ring attention)."""
    ALL_GATHER = "all_gather"
    """Each rank gathers all keys and values before its attention (Llama 3)."""
    ULYSSES = "a2a"
    """All-to-all from sequence shards to head shards and back (DeepSpeed-Ulysses)."""
    HIERARCHICAL = "a2a+p2p"
    """All-to-all inside groups of `cp_inner` ranks, rings between the groups."""


class ParallelLayout(FileRecord):
    """How one step is spread over tp x cp x dp x pp ranks.

    Rank order is Megatron's: tp fastest, then cp, dp, pp.
    """

    tp: int = Field(default=1, ge=1, le=4096)
    """Tensor-parallel size."""
    pp: int = Field(default=1, ge=1, le=4096)
    """Pipeline-parallel size."""
    dp: int = Field(default=1, ge=1, le=10**6)
    """Data-parallel size."""
    cp: int = Field(default=1, ge=1, le=4096)
    """Context-parallel size."""
    ep: int = Field(default=1, ge=1, le=4096)
    """Expert-parallel size (dense models: 1); ep x etp divides tp x cp x dp."""
    etp: int | None = Field(default=None, ge=1, le=4096)
    """Tensor-parallel size of the experts; None is tp, as in Megatron-LM."""
    cp_comm_type: ContextExchange = ContextExchange.RING
    """How cp ranks exchange keys and values."""
    cp_inner: int | None = Field(default=None, ge=1, le=4096)
    """Ranks of an all-to-all group of hierarchical context parallelism."""
    vpp: int = Field(default=1, ge=1, le=1024)
    """Model chunks a pipeline rank (virtual pipeline size)."""
    micro_batch_size: int = Field(default=1, ge=1, le=10**6)
    """Sequences a micro-batch and replica."""
    schedule: ScheduleName | None = None
    """None: interleaved where vpp > 1, else 1f1b."""
    sequence_parallel: bool = False
    """Norms, dropout and residuals are split over tp along the sequence."""
    zero_stage: int = Field(default=0, ge=0, le=3)
    """0 DDP, 1 optimizer states, 2 + gradients, 3 + parameters (FSDP) sharded over data ranks."""
    shard_size: int | None = Field(default=None, ge=1)
    """Data ranks that share one sharded copy (HSDP); None is all of them."""
    recompute: Recompute = Recompute.NONE
    """What the backward pass computes again: nothing, modules of a layer, whole layers."""
    recompute_modules: tuple[RecomputeModule, ...] = ()
    """What selective recomputation computes again; empty is the attention core."""
    recompute_method: RecomputeMethod | None = None
    """With full recomputation and `recompute_num_layers`; None is "block"."""
    recompute_num_layers: int | None = Field(default=None, ge=1, le=10**4)
    """With full recomputation: "block" recomputes only so many layers, the first of each virtual
    stage; "uniform" recomputes all, so many at a time. None is all, one by one."""
    offload_layers: int = Field(default=0, ge=0, le=10**4)
    """Layers, the first of each virtual stage, whose activations wait in host memory."""
    optimizer_offload: float = Field(default=0.0, ge=0, le=1)
    """Share of the optimizer's states that lives, and is updated, on the host."""
    schedule_file: str | None = None
    """CSV of a pipeline schedule in PyTorch's notation (schedule "csv")."""
    placement: Placement | None = None
    """How the stages of `schedule_file` lie on its ranks: "loop" or "v"; None is loop."""
    extra_warm_up: int = Field(default=0, ge=0, le=10**6)
    """Forward passes more before a stage's first backward pass (1f1b, interleaved); Megatron-LM
    runs one more where it overlaps the experts' all-to-all with another micro-batch."""
    microbatch_group_size: int | None = Field(default=None, ge=1, le=10**6)
    """Micro-batches that a chunk runs in a row in the interleaved schedule; None is pp."""
    layers_per_stage: tuple[int, ...] | None = None
    """Layers of each of the pp x vpp virtual stages, in order; None is the stack's rule."""
    data_parallel: DataParallel = DataParallel.ALL_REDUCE
    sync_every: int = Field(default=1, ge=1, le=10**6)
    """Steps between two parameter averages of local SGD."""

    @classmethod
    def of_checked(cls, fields: dict[str, Any]) -> Self:
        """Return the layout of a value for each field, all of which are known to be valid.

        It is what `model_construct` returns, which takes too long for a search.
        """
        made = cls.__new__(cls)
        object.__setattr__(made, "__dict__", dict(fields))
        object.__setattr__(made, "__pydantic_fields_set__", _FIELDS)
        object.__setattr__(made, "__pydantic_extra__", None)
        object.__setattr__(made, "__pydantic_private__", None)
        return made

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def expert_tp(self) -> int:
        """Tensor-parallel size of the experts."""
        return self.tp if self.etp is None else self.etp

    @property
    def expert_data_ranks(self) -> int:
        """Ranks that hold the same experts: tp x cp x dp / (ep x etp)."""
        return self.tp * self.cp * self.dp // (self.ep * self.expert_tp)

    @property
    def data_ranks(self) -> int:
        """Ranks that hold the same parameters: dp x cp."""
        return self.dp * self.cp

    @property
    def shard_ranks(self) -> int:
        """Ranks over which ZeRO shards."""
        return self.shard_size or self.data_ranks

    @property
    def virtual_stages(self) -> int:
        """Model chunks in all: pp x vpp."""
        return self.pp * self.vpp

    @property
    def pipeline(self) -> PipelineShape:
        """Which stage runs which part of the model."""
        placement = placement_of(self.effective_schedule, self.placement)
        return pipeline_of(self.pp, self.vpp, placement)

    @property
    def effective_schedule(self) -> ScheduleName:
        """The schedule, with the default filled in."""
        if self.schedule is not None:
            return self.schedule
        return ScheduleName.INTERLEAVED if self.vpp > 1 else ScheduleName.ONE_F_ONE_B

    def micro_batches(self, global_batch_size: int) -> int:
        """Return micro-batches a replica and step; the batch must divide (see `checks`)."""
        return global_batch_size // (self.dp * self.micro_batch_size)

    def __str__(self) -> str:
        parts = [f"tp{self.tp}", f"pp{self.pp}", f"dp{self.dp}"]
        parts += [f"cp{self.cp}{self._exchange}"] if self.cp > 1 else []
        parts += [f"ep{self.ep}"] if self.ep > 1 else []
        parts += [f"etp{self.etp}"] if self.etp not in (None, self.tp) else []
        parts += [f"vpp{self.vpp}"] if self.vpp > 1 else []
        parts.append(f"mb{self.micro_batch_size}")
        usual = ScheduleName.INTERLEAVED if self.vpp > 1 else ScheduleName.ONE_F_ONE_B
        schedule = self.effective_schedule
        parts += [str(schedule)] if self.pp > 1 and schedule is not usual else []
        parts += [f"group{self.microbatch_group_size}"] if self.microbatch_group_size else []
        parts += [f"warm-up+{self.extra_warm_up}"] if self.extra_warm_up else []
        parts += [f"zero{self.zero_stage}"] if self.zero_stage else []
        parts += ["sp"] if self.sequence_parallel else []
        parts += [f"recompute-{self.recomputed}"] if self.recompute is not Recompute.NONE else []
        parts += [f"offload{self.offload_layers}"] if self.offload_layers else []
        parts += [f"optimizer-offload{self.optimizer_offload:g}"] if self.optimizer_offload else []
        return " ".join(parts)

    @property
    def recomputed(self) -> str:
        """What is recomputed, in Megatron's words: "none", "moe_act+layernorm", "full-4"."""
        if self.recompute_modules:
            return "+".join(self.recompute_modules)
        layers = f"-{self.recompute_num_layers}" if self.recompute_num_layers else ""
        method = f"-{self.recompute_method}" if self.recompute_method else ""
        return f"{self.recompute}{method}{layers}"

    @property
    def _exchange(self) -> str:
        if self.cp_comm_type is ContextExchange.RING:
            return ""
        inner = f"/{self.cp_inner}" if self.cp_inner else ""
        return f"-{self.cp_comm_type}{inner}"


_FIELDS = set(ParallelLayout.model_fields)


def axis_group(layout: ParallelLayout, axis: Axis, domains: Domains) -> GroupShape:
    """Return the shape of the group that a rank belongs to along `axis`.

    The data-parallel group is the one over which gradients are reduced: dp x cp ranks. The
    pipeline group is the pair of the first two stages; `stage_pair` has any two. Inside the
    tp x cp x dp ranks of a stage experts are laid out etp fastest, then ep, then edp (Megatron-LM).
    """
    tp, cp, dp = layout.tp, layout.cp, layout.dp
    match axis:
        case Axis.TENSOR:
            return group_shape(tp, 1, domains)
        case Axis.CONTEXT:
            return group_shape(cp, tp, domains)
        case Axis.DATA:
            return group_shape(cp * dp, tp, domains)
        case Axis.PIPELINE:
            return stage_pair(layout, 0, min(1, layout.pp - 1), domains)
        case Axis.EXPERT:
            return group_shape(layout.ep, layout.expert_tp, domains)
        case Axis.EXPERT_TENSOR:
            return group_shape(layout.expert_tp, 1, domains)
        case Axis.EXPERT_DATA:
            stride = layout.ep * layout.expert_tp
            return group_shape(layout.expert_data_ranks, stride, domains)
        case Axis.HOST:
            return GroupShape(size=1, per_domain=1)


def stage_pair(layout: ParallelLayout, one: int, other: int, domains: Domains) -> GroupShape:
    """Return the shape of a pair of ranks that stand at the same place of two pipeline stages.

    Where only some of the pairs lie in one scale-up domain, the others set the pace.

    >>> pairs = [stage_pair(ParallelLayout(tp=2, pp=8), s, s + 1, 8) for s in (2, 3)]
    >>> [pair.domains for pair in pairs]
    [1, 2]
    """
    if one == other:
        return GroupShape(size=1, per_domain=1)
    ranks = layout.tp * layout.cp * layout.dp
    first, second = one * ranks, other * ranks
    if isinstance(domains, int):
        inside = all((first + i) // domains == (second + i) // domains for i in range(ranks))
    else:
        of = domains.of_rank
        inside = bool((of[first : first + ranks] == of[second : second + ranks]).all())
    return GroupShape(size=2, per_domain=2 if inside else 1)
