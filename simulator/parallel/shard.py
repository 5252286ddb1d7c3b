"""How the tensors of a layer are cut: the sizes that every local operator is built from."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.parallel.domains import Domains, group_shape
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import (
    ZERO_PARAMETERS,
    Axis,
    ContextExchange,
    ParallelLayout,
    RecomputeModule,
    axis_group,
)
from simulator.parallel.work import CommWork
from simulator.workload.job import TrainingJob
from simulator.workload.recipes import SCALINGS, Scaling
from simulator.workload.stack import Kernels, Overlap, Stack
from simulator.workload.stack_choices import SelectiveRecompute


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One micro-batch as one rank sees it."""

    micro_batch: int
    """Sequences."""
    seq: int
    """Tokens of a sequence on this rank: seq_length / cp."""
    tp: int
    cp: int
    ep: int
    expert_tp: int
    sequence_parallel: bool
    element: float
    """Bytes of one activation."""
    recompute_modules: tuple[RecomputeModule, ...]
    """What selective recomputation computes again; empty where the stack does it by operator."""
    cp_comm_type: ContextExchange
    cp_inner: int
    """Ranks of an all-to-all group of hierarchical context parallelism; 1 for none."""
    job: TrainingJob
    transposes: bool = False
    """Whether 8-bit GEMMs need both operands along the summed dimension (Hopper: TN only)."""
    casts_weights: bool = False
    """Whether narrow weights are cast in each pass, not once a step."""
    kernels: Kernels
    overlap: Overlap
    tensor_group: GroupShape
    context_group: GroupShape
    context_inner_group: GroupShape
    context_outer_group: GroupShape
    expert_group: GroupShape
    expert_tensor_group: GroupShape
    expert_model_group: GroupShape
    """Ranks that hold one copy of all experts: ep x etp."""

    @property
    def key(self) -> tuple[object, ...]:
        """All that changes a pass among the layouts of one job and stack, short to hash."""
        return (*self.plain_key, self.recompute_modules)

    @property
    def plain_key(self) -> tuple[object, ...]:
        """All of it that changes a layer's passes, recomputation apart."""
        return (
            *self.dense_key,
            self.ep,
            self.expert_tp,
            self.expert_group.per_domain,
            self.expert_tensor_group.per_domain,
            self.expert_model_group.per_domain,
        )

    @property
    def dense_key(self) -> tuple[object, ...]:
        """All of it that changes the passes of embedding and head."""
        return (
            self.micro_batch,
            self.tp,
            self.cp,
            self.sequence_parallel,
            self.casts_weights,
            self.cp_comm_type,
            self.cp_inner,
            self.tensor_group.per_domain,
            self.context_group.per_domain,
            self.context_inner_group.per_domain,
            self.context_outer_group.per_domain,
        )

    @property
    def tokens(self) -> int:
        """Tokens that the matrix products of this rank see."""
        return self.micro_batch * self.seq

    @property
    def hides_trips(self) -> bool:
        """Whether tokens travel to their experts under the compute of another micro-batch."""
        return self.job.moe.overlap and self.overlap.expert_fraction > 0

    @property
    def imbalance(self) -> float:
        """Tokens of the busiest expert rank over the mean; 1 where each rank holds all experts."""
        return self.job.moe.load_imbalance if self.ep > 1 else 1.0

    @property
    def residual_tokens(self) -> float:
        """Tokens that norms and residuals of this rank see: tokens / tp with sequence parallel."""
        return self.tokens / self.tp if self.sequence_parallel else float(self.tokens)

    @property
    def kept_tokens(self) -> float:
        """Tokens that are kept of the input of a column-parallel layer."""
        return float(self.tokens) if self.kernels.keeps_gathered else self.residual_tokens

    @property
    def scaling(self) -> Scaling | None:
        """How narrow linear layers are scaled; None where all run in the job's 16 or 32 bits."""
        recipe = self.job.effective_recipe
        return None if recipe is None else SCALINGS[recipe]

    def tensor_comm(
        self,
        name: str,
        collective: Collective,
        hidden_size: int,
        hidden_by: tuple[str, ...],
        element: float | None = None,
    ) -> CommWork:
        """Return the tp collective over one (tokens, hidden_size) tensor of `element` bytes each.

        None is an activation's.
        """
        payload = (self.element if element is None else element) * self.tokens * hidden_size
        chunks, fraction = self._pipelined(name) if hidden_by else (1, 0.0)
        return CommWork(
            name=name,
            collective=collective,
            payload=payload / chunks,
            axis=Axis.TENSOR,
            group=self.tensor_group,
            hidden_by=hidden_by,
            hidden_fraction=fraction,
            count=chunks,
        )

    def _pipelined(self, name: str) -> tuple[int, float]:
        """Return in how many chunks this collective runs, and what the GEMM beside it hides.

        The collectives of an input gradient and of a re-gathered input need nothing of the GEMM
        they run beside, so that all of it hides them; the others are pipelined with their own GEMM.
        In n equal chunks of which the GEMM takes b seconds each and the collective a, with the
        other's chunk before or behind it, both take a + (n - 1) max(a, b) + b, which is
        a + (n - 1) max(0, a - b) more than the GEMM: n a - (1 - 1 / n) min(n a, n b). The share
        that can hide is 1 - 1 / n.

        Source: Wang et al. 2023, "Overlap Communication with Dependent Computation via
        Decomposition", section 3; PyTorch torch/distributed/_symmetric_memory (async tensor
        parallelism).
        """
        independent = name.endswith((".grad_input", ".regather"))
        if independent and self.overlap.tensor_backward:
            return 1, 1.0
        chunks = self.overlap.tensor_chunks
        return chunks, 1 - 1 / chunks if chunks > 1 else self.overlap.tensor_fraction


def make_shard(
    layout: ParallelLayout,
    job: TrainingJob,
    stack: Stack,
    domains: Domains,
    *,
    transposes: bool = False,
) -> Shard:
    """Return what one rank of `layout` sees of one micro-batch."""
    inner = layout.cp_inner or 1
    modules = layout.recompute_modules or (RecomputeModule.CORE_ATTENTION,)
    by_operator = stack.selective is SelectiveRecompute.OPERATORS
    return Shard(
        micro_batch=layout.micro_batch_size,
        seq=job.seq_length // layout.cp,
        tp=layout.tp,
        cp=layout.cp,
        ep=layout.ep,
        expert_tp=layout.expert_tp,
        sequence_parallel=layout.sequence_parallel and layout.tp > 1,
        element=max(2.0, min(job.precision.bytes, 4.0)),
        recompute_modules=() if by_operator else modules,
        cp_comm_type=layout.cp_comm_type,
        cp_inner=inner,
        job=job,
        transposes=transposes,
        casts_weights=casts_in_each_pass(layout, job),
        kernels=stack.kernels,
        overlap=stack.overlap,
        tensor_group=axis_group(layout, Axis.TENSOR, domains),
        context_group=axis_group(layout, Axis.CONTEXT, domains),
        context_inner_group=group_shape(inner, layout.tp, domains),
        context_outer_group=group_shape(layout.cp // inner, layout.tp * inner, domains),
        expert_group=axis_group(layout, Axis.EXPERT, domains),
        expert_tensor_group=axis_group(layout, Axis.EXPERT_TENSOR, domains),
        expert_model_group=group_shape(layout.ep * layout.expert_tp, 1, domains),
    )


def casts_in_each_pass(layout: ParallelLayout, job: TrainingJob) -> bool:
    """Return whether narrow copies of weights live for one pass only.

    ZeRO-3 gathers parameters for each pass; what is gathered in 8 bits needs no cast.
    """
    recipe = job.effective_recipe
    if recipe is None:
        return False
    scaling = SCALINGS[recipe]
    gathered = layout.zero_stage == ZERO_PARAMETERS and layout.data_ranks > 1
    narrow = job.fp8_parameters and scaling.gathers_parameters
    return not scaling.caches_weights or (gathered and not narrow)
