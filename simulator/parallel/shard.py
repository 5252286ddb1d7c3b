"""How the tensors of a layer are cut: the sizes that every local operator is built from."""

from __future__ import annotations

from dataclasses import dataclass

from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import Axis, ParallelLayout, Recompute, axis_group
from simulator.parallel.work import CommWork
from simulator.workload.job import TrainingJob
from simulator.workload.stack import Kernels, Overlap, Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One micro-batch as one rank sees it."""

    micro_batch: int
    """Sequences."""
    seq: int
    """Tokens of a sequence on this rank: seq_length / cp."""
    tp: int
    cp: int
    sequence_parallel: bool
    element: float
    """Bytes of one activation."""
    recompute: Recompute
    kernels: Kernels
    overlap: Overlap
    tensor_group: GroupShape
    context_group: GroupShape

    @property
    def tokens(self) -> int:
        """Tokens that the matrix products of this rank see."""
        return self.micro_batch * self.seq

    @property
    def residual_tokens(self) -> float:
        """Tokens that norms and residuals of this rank see: tokens / tp with sequence parallel."""
        return self.tokens / self.tp if self.sequence_parallel else float(self.tokens)

    @property
    def kept_tokens(self) -> float:
        """Tokens that are kept of the input of a column-parallel layer."""
        return float(self.tokens) if self.kernels.keeps_gathered else self.residual_tokens

    def tensor_comm(
        self, name: str, collective: Collective, hidden_size: int, hidden_by: tuple[str, ...]
    ) -> CommWork:
        """Return the tp collective over one (tokens, hidden_size) activation."""
        return CommWork(
            name=name,
            collective=collective,
            payload=self.element * self.tokens * hidden_size,
            axis=Axis.TENSOR,
            group=self.tensor_group,
            hidden_by=hidden_by,
            hidden_fraction=self._hidden_fraction(name),
        )

    def _hidden_fraction(self, name: str) -> float:
        """Return the share of this collective that the GEMM beside it hides.

        The collectives of an input gradient and of a re-gathered input need nothing of the GEMM
        they run beside, so that all of it hides them; the others are pipelined with their own GEMM.
        """
        independent = name.endswith((".grad_input", ".regather"))
        if independent and self.overlap.tensor_backward:
            return 1.0
        return self.overlap.tensor_fraction


def make_shard(layout: ParallelLayout, job: TrainingJob, stack: Stack, domain_size: int) -> Shard:
    """Return what one rank of `layout` sees of one micro-batch."""
    return Shard(
        micro_batch=layout.micro_batch_size,
        seq=job.seq_length // layout.cp,
        tp=layout.tp,
        cp=layout.cp,
        sequence_parallel=layout.sequence_parallel and layout.tp > 1,
        element=max(2.0, min(job.precision.bytes, 4.0)),
        recompute=layout.recompute,
        kernels=stack.kernels,
        overlap=stack.overlap,
        tensor_group=axis_group(layout, Axis.TENSOR, domain_size),
        context_group=axis_group(layout, Axis.CONTEXT, domain_size),
    )
