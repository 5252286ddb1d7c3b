"""Whole layers and the two ends of the model as forward, backward and recomputed blocks."""

from __future__ import annotations

from dataclasses import replace

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.attention import (
    attention_backward,
    attention_forward,
)
from simulator.parallel.groups import Collective
from simulator.parallel.layout import Recompute
from simulator.parallel.linear import Linear, linear_backward, linear_forward
from simulator.parallel.mla import mla_backward, mla_forward
from simulator.parallel.mlp import (
    linear_block_backward,
    linear_block_forward,
    mlp_backward,
    mlp_forward,
)
from simulator.parallel.moe import moe_backward, moe_forward
from simulator.parallel.recompute import recomputation
from simulator.parallel.residual import norm_backward, norm_forward, open_branch_backward
from simulator.parallel.shard import Shard
from simulator.parallel.work import FP32_BYTES, Block, CommWork, PassPair, Piece
from simulator.workload.job import Part
from simulator.workload.layer import (
    AttentionSpec,
    LayerSpec,
    LinearSpec,
    MlaSpec,
    MlpSpec,
    MoeSpec,
)
from simulator.workload.operator import MemoryBound

_LOSS_REDUCTIONS = 3
"""Vocabulary-parallel cross-entropy reduces a maximum, a target logit and a sum (Megatron-LM)."""


Pieces = tuple[Piece, ...]


def layer_blocks(layer: LayerSpec, shard: Shard) -> tuple[Block, Block]:
    """Return the forward and the backward pass over one layer, recomputation apart."""
    return joined(attention_pieces(layer, shard), mlp_pieces(layer, shard))


def attention_pieces(layer: LayerSpec, shard: Shard) -> tuple[Pieces, Pieces]:
    """Return what a layer's attention does forward and backward; `shard.dense_key` decides it."""
    forward, backward = (_attention(layer, shard, backward=back) for back in (False, True))
    return tuple(forward), tuple(backward)


def mlp_pieces(layer: LayerSpec, shard: Shard) -> tuple[Pieces, Pieces]:
    """Return what a layer's MLP does forward and backward.

    `shard.plain_key` decides it where it is a mixture of experts, else `shard.dense_key`.
    """
    forward, backward = (_mlp(layer, shard, backward=back) for back in (False, True))
    return tuple(forward), tuple(backward)


def joined(attention: tuple[Pieces, Pieces], mlp: tuple[Pieces, Pieces]) -> tuple[Block, Block]:
    """Return the forward and the backward pass over a layer of these two halves."""
    forward = Block(name="layer.forward", pieces=attention[0] + mlp[0])
    return forward, Block(name="layer.backward", pieces=mlp[1] + attention[1])


def layer_passes(
    layer: LayerSpec,
    shard: Shard,
    recompute: Recompute,
    blocks: tuple[Block, Block] | None = None,
) -> PassPair:
    """Return both passes over one layer, with what recomputation adds and frees.

    `blocks` are its `layer_blocks`, where they are known.
    """
    forward, backward = blocks or layer_blocks(layer, shard)
    made = recomputation(layer, shard, recompute, forward)
    return PassPair(
        forward=forward,
        backward=backward,
        recompute=Block(name="layer.recompute", pieces=made.again),
        kept=forward.saved - made.freed,
        transient=made.transient + backward.buffer,
    )


def embedding_passes(hidden: int, shard: Shard, *, learned_positions: bool) -> PassPair:
    """Return the lookup in the vocabulary-parallel table, and the scatter of its gradient.

    A frozen table, behind which no gradient is needed, has no backward pass.
    """
    size = shard.element * shard.tokens * hidden
    passes, trained = 2 + 2 * learned_positions, shard.job.trains(Part.EMBEDDING)
    forward: list[Piece] = [_memory("embedding.lookup", passes * size, MemoryClass.EMBEDDING)]
    backward: list[Piece] = []
    if shard.tp > 1:
        reduce = Collective.REDUCE_SCATTER if shard.sequence_parallel else Collective.ALL_REDUCE
        forward.append(shard.tensor_comm("embedding.reduce", reduce, hidden, ()))
        if shard.sequence_parallel:
            gather = Collective.ALL_GATHER
            if trained:
                backward.append(shard.tensor_comm("embedding.gather_grad", gather, hidden, ()))
    kept = 0.0
    if shard.kernels.dropout:
        kept = shard.residual_tokens * hidden
        moved = (2 * shard.element + 1) * kept
        forward.append(_memory("embedding.dropout", moved, MemoryClass.POINTWISE))
        if trained:
            backward.append(_memory("embedding.dropout.backward", moved, MemoryClass.POINTWISE))
    if trained:
        backward.append(_memory("embedding.scatter", passes * size, MemoryClass.EMBEDDING))
    return PassPair(
        forward=Block(name="embedding.forward", pieces=tuple(forward)),
        backward=Block(name="embedding.backward", pieces=tuple(backward)),
        recompute=Block(name="embedding.recompute", pieces=()),
        kept=kept,
        transient=0.0,
    )


def head_passes(hidden: int, vocab: int, shard: Shard) -> PassPair:
    """Return final norm, logits of the local `vocab` share, and loss; nothing is recomputed."""
    t, kernels = shard.tokens, shard.kernels
    logits = float(t) * vocab
    loss_bytes = kernels.logits_passes * FP32_BYTES * logits / 2
    launches = 1 if kernels.fused_loss else max(1, round(kernels.logits_passes / 2))
    kind = MemoryClass.CROSS_ENTROPY if kernels.fused_loss else MemoryClass.POINTWISE
    forward: list[Piece] = [*norm_forward("head.norm", hidden, shard)]
    if shard.sequence_parallel:
        forward.append(shard.tensor_comm("head.gather", Collective.ALL_GATHER, hidden, ("head",)))
    head = Linear(
        name="head",
        tokens=t,
        n=vocab,
        k=hidden,
        part=Part.HEAD,
        kept_tokens=shard.kept_tokens,
        narrow=False,
    )
    forward += linear_forward(head, shard)
    loss = _memory("head.loss", loss_bytes, kind)
    forward.append(replace(loss, launches=launches))
    if shard.tp > 1:
        forward.append(_loss_reduction(shard))
    gradient = _memory("head.loss.backward", loss_bytes, kind)
    backward = [
        replace(gradient, launches=launches),
        *open_branch_backward("head", hidden, shard, linear_backward(head, shard)),
        *norm_backward("head.norm", hidden, shard),
    ]
    forward_block = Block(name="head.forward", pieces=tuple(forward))
    return PassPair(
        forward=forward_block,
        backward=Block(name="head.backward", pieces=tuple(backward)),
        recompute=Block(name="head.recompute", pieces=()),
        kept=forward_block.saved,
        transient=kernels.logits_bytes * logits,
    )


def _attention(layer: LayerSpec, shard: Shard, *, backward: bool) -> list[Piece]:
    match layer.attention:
        case AttentionSpec() as attention:
            build = attention_backward if backward else attention_forward
            return build(layer, attention, shard)
        case MlaSpec() as latent:
            return (mla_backward if backward else mla_forward)(layer, latent, shard)
        case LinearSpec() as block:
            return _linear("attention.linear", layer, block, shard, backward=backward)
        case None:
            return []


def _mlp(layer: LayerSpec, shard: Shard, *, backward: bool) -> list[Piece]:
    match layer.mlp:
        case MlpSpec() as mlp:
            return (mlp_backward if backward else mlp_forward)(layer, mlp, shard)
        case MoeSpec() as moe:
            return (moe_backward if backward else moe_forward)(layer, moe, shard)
        case LinearSpec() as block:
            return _linear("mlp.linear", layer, block, shard, backward=backward)
        case None:
            return []


def _linear(
    name: str, layer: LayerSpec, block: LinearSpec, shard: Shard, *, backward: bool
) -> list[Piece]:
    build = linear_block_backward if backward else linear_block_forward
    return build(name, layer, block, shard)


def _memory(name: str, moved: float, kind: MemoryClass) -> MemoryBound:
    return MemoryBound(name=name, bytes=moved, kind=kind)


def _loss_reduction(shard: Shard) -> CommWork:
    return replace(
        shard.tensor_comm("head.loss.reduce", Collective.ALL_REDUCE, 1, ()),
        payload=FP32_BYTES * shard.tokens,
        count=_LOSS_REDUCTIONS,
    )
