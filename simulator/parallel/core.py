"""The attention core: QK^T, softmax and PV of one micro-batch, whatever projects into it.

Shapes: t = micro_batch x seq_length / cp tokens, a query heads, g key-value heads (after tensor
parallelism), d channels of a query or key head, v of a value head, e bytes an activation.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.parallel.shard import Shard
from simulator.parallel.work import Piece
from simulator.workload.operator import AttentionShape, FlashAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """Heads of one rank after tensor parallelism and before context parallelism, and their mask.

    >>> core = Core(heads=4, kv_heads=2, head_dim=8, v_head_dim=8)
    >>> core.query_width, core.key_width, core.value_width, core.output_width
    (32, 16, 16, 32)
    """

    heads: int
    kv_heads: int
    head_dim: int
    """Channels of a query or key head."""
    v_head_dim: int
    """Channels of a value head."""
    window: int | None = None
    """Keys that a query sees at most (sliding window); None for all."""
    chunk: int | None = None
    """Length of the chunks of a sequence that see only themselves (Llama 4); None for none."""

    @property
    def query_width(self) -> int:
        """Channels of all query heads."""
        return self.heads * self.head_dim

    @property
    def key_width(self) -> int:
        """Channels of all key heads."""
        return self.kv_heads * self.head_dim

    @property
    def value_width(self) -> int:
        """Channels of all value heads."""
        return self.kv_heads * self.v_head_dim

    @property
    def output_width(self) -> int:
        """Channels that the core writes."""
        return self.heads * self.v_head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class CorePieces:
    """The fused core of a micro-batch: its kernels, and what is exchanged around them."""

    kernels: tuple[FlashAttention, ...]
    """Forward; the backward pass runs the same shapes."""
    before: tuple[Piece, ...] = ()
    after: tuple[Piece, ...] = ()
    backward_before: tuple[Piece, ...] = ()
    backward_after: tuple[Piece, ...] = ()


def core_shape(core: Core, shard: Shard, *, seq: int, split: int = 1) -> AttentionShape:
    """Return causal attention of `seq` tokens over themselves under the mask of model and job.

    Each document and each chunk is spread over `split` ranks, so that 1 / split of it is here.
    What is longer than the sequence is no mask and left out.
    """
    whole = seq * split
    document = _shorter(shard.job.document_length, whole)
    chunk = _shorter(core.chunk, document or whole)
    return AttentionShape(
        batch=shard.micro_batch,
        seq_q=seq,
        seq_k=seq,
        heads=core.heads,
        kv_heads=core.kv_heads,
        head_dim=core.head_dim,
        v_head_dim=None if core.v_head_dim == core.head_dim else core.v_head_dim,
        window=_shorter(core.window, whole),
        document=document and max(1, document // split),
        chunk=chunk and max(1, chunk // split),
    )


def _shorter(length: int | None, whole: int) -> int | None:
    return length if length is not None and length < whole else None
