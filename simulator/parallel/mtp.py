"""A module of multi-token prediction, less its layer and its head, which are like the model's own.

A module takes the hidden state h_i of the depth before and the embedding of the token that is to
be predicted from it, normalises both and projects the pair, 2 h channels, back to h. Then come a
layer, a norm, and logits and loss by the head that all depths share. The modules stand behind the
last layer, on the last stage, which therefore needs the embedding table.

Source: DeepSeek-AI 2024, DeepSeek-V3, section 2.2, equations 21 to 25; Megatron-LM
core/transformer/multi_token_prediction.py (the projection is column parallel, its output gathered).
"""

from __future__ import annotations

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.blocks import embedding_passes
from simulator.parallel.groups import Collective
from simulator.parallel.linear import Linear, linear_backward, linear_forward
from simulator.parallel.residual import (
    norm_backward,
    norm_forward,
    open_branch_backward,
    open_branch_forward,
)
from simulator.parallel.shard import Shard
from simulator.parallel.work import ADD_PASSES, Block, PassPair, Piece
from simulator.workload.job import Part
from simulator.workload.operator import MemoryBound

_NAME = "mtp.projection"
_JOIN_PASSES = 4
"""The two halves of 2 h channels are read and the whole is written: 4 passes over h."""


def mtp_passes(hidden: int, shard: Shard) -> PassPair:
    """Return both passes over embedding, norms and projection of one module."""
    embedding = embedding_passes(hidden, shard, learned_positions=False)
    forward = Block(
        name="mtp.forward", pieces=(*embedding.forward.pieces, *_forward(hidden, shard))
    )
    return PassPair(
        forward=forward,
        backward=Block(
            name="mtp.backward", pieces=(*_backward(hidden, shard), *embedding.backward.pieces)
        ),
        recompute=Block(name="mtp.recompute", pieces=()),
        kept=forward.saved + embedding.kept,
        transient=0.0,
    )


def _forward(hidden: int, shard: Shard) -> list[Piece]:
    pieces = [
        *norm_forward("mtp.embedding_norm", hidden, shard),
        *norm_forward("mtp.hidden_norm", hidden, shard),
        _rows("mtp.join", _JOIN_PASSES, hidden, shard, MemoryClass.COPY),
        *open_branch_forward(_NAME, 2 * hidden, shard),
        *linear_forward(_projection(hidden, shard), shard),
    ]
    if shard.tp > 1:
        gather = Collective.ALL_GATHER
        pieces.append(shard.tensor_comm(f"{_NAME}.gather_output", gather, hidden, ()))
    return pieces


def _backward(hidden: int, shard: Shard) -> list[Piece]:
    """Return the backward pass; the slice of a gathered output costs nothing backward."""
    pieces: list[Piece] = []
    if shard.sequence_parallel:
        gather = Collective.ALL_GATHER
        pieces.append(shard.tensor_comm(f"{_NAME}.gather_grad", gather, hidden, ()))
    gemms = linear_backward(_projection(hidden, shard), shard)
    return [
        *pieces,
        *open_branch_backward(_NAME, 2 * hidden, shard, gemms),
        _rows("mtp.join.backward", _JOIN_PASSES, hidden, shard, MemoryClass.COPY),
        *norm_backward("mtp.hidden_norm", hidden, shard)[:1],
        _rows("mtp.hidden.grad", ADD_PASSES, hidden, shard, MemoryClass.POINTWISE),
        *norm_backward("mtp.embedding_norm", hidden, shard)[:1],
    ]


def _projection(hidden: int, shard: Shard) -> Linear:
    return Linear(
        name=_NAME,
        tokens=shard.tokens,
        n=hidden // shard.tp,
        k=2 * hidden,
        part=Part.MLP,
        kept_tokens=shard.kept_tokens,
    )


def _rows(name: str, passes: int, hidden: int, shard: Shard, kind: MemoryClass) -> MemoryBound:
    moved = passes * shard.element * shard.residual_tokens * hidden
    return MemoryBound(name=name, bytes=moved, kind=kind)
