"""The attention half of a layer as one rank runs it: operators, tp and cp collectives.

Shapes: t = micro_batch x seq_length / cp tokens, h hidden, q = heads x head_dim / tp and
kv = key-value heads x head_dim / tp local widths, e bytes an activation. The byte counts follow
Korthikanti et al. 2022, section 4.1: with e = 2 and dropout, no flash, they add up to its
s b h (11 + 5 a s / h) for the attention half.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from simulator.hardware.kernel_constants import GemmLayout, MemoryClass
from simulator.parallel.groups import Collective
from simulator.parallel.layout import Axis
from simulator.parallel.linear import linear_backward, linear_forward
from simulator.parallel.residual import (
    close_branch_backward,
    close_branch_forward,
    norm_backward,
    norm_forward,
    open_branch_backward,
    open_branch_forward,
)
from simulator.parallel.shard import Shard
from simulator.parallel.work import CommWork, Piece
from simulator.workload.layer import AttentionSpec, LayerSpec, QkNorm
from simulator.workload.operator import AttentionShape, FlashAttention, Gemm, MemoryBound
from simulator.workload.stack import AttentionKernel

FP32_BYTES = 4.0
MASK_BYTES = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHeads:
    """Heads of one rank; key-value heads are replicated where there are fewer than tp."""

    query: int
    key_value: int
    head_dim: int

    @property
    def q(self) -> int:
        """Width of the local queries."""
        return self.query * self.head_dim

    @property
    def kv(self) -> int:
        """Width of the local keys (and of the local values)."""
        return self.key_value * self.head_dim


def local_heads(attention: AttentionSpec, tp: int) -> LocalHeads:
    """Return the heads that one of `tp` ranks holds."""
    return LocalHeads(
        query=attention.num_attention_heads // tp,
        key_value=max(1, attention.num_key_value_heads // tp),
        head_dim=attention.head_dim,
    )


def attention_forward(layer: LayerSpec, attention: AttentionSpec, shard: Shard) -> list[Piece]:
    """Return the forward pass: norm, qkv, rope, core attention, projection, residual."""
    heads, hidden = local_heads(attention, shard.tp), layer.hidden_size
    return [
        *norm_forward("attention.norm", hidden, shard),
        *open_branch_forward("attention.qkv", hidden, shard),
        *linear_forward(
            "attention.qkv",
            shard.tokens,
            heads.q + 2 * heads.kv,
            hidden,
            _saved_input(hidden, shard),
        ),
        *_rope("attention.rope", attention, heads, shard),
        *core_forward(attention, heads, shard),
        *linear_forward(
            "attention.proj", shard.tokens, hidden, heads.q, shard.element * shard.tokens * heads.q
        ),
        *close_branch_forward("attention.proj", layer, shard),
    ]


def attention_backward(layer: LayerSpec, attention: AttentionSpec, shard: Shard) -> list[Piece]:
    """Return the backward pass, in the order in which autograd runs it."""
    heads, hidden = local_heads(attention, shard.tp), layer.hidden_size
    t = shard.tokens
    return [
        *close_branch_backward("attention.proj", layer, shard),
        *linear_backward("attention.proj", t, hidden, heads.q, shard, bias=attention.output_bias),
        *core_backward(attention, heads, shard),
        *_rope("attention.rope.backward", attention, heads, shard),
        *open_branch_backward(
            "attention.qkv",
            hidden,
            shard,
            linear_backward(
                "attention.qkv", t, heads.q + 2 * heads.kv, hidden, shard, bias=attention.qkv_bias
            ),
        ),
        *norm_backward("attention.norm", hidden, shard),
    ]


def core_forward(attention: AttentionSpec, heads: LocalHeads, shard: Shard) -> list[Piece]:
    """Return QK^T, softmax and PV of one micro-batch, fused or as separate kernels."""
    if shard.kernels.attention is AttentionKernel.FLASH:
        return [*_context_exchange(heads, shard, 1), *_flash(attention, heads, shard)]
    return _unfused_forward(heads, shard)


def core_backward(attention: AttentionSpec, heads: LocalHeads, shard: Shard) -> list[Piece]:
    """Return the backward pass of `core_forward`."""
    if shard.kernels.attention is AttentionKernel.FLASH:
        backward = [
            replace(piece, name=f"{piece.name}.backward", backward=True, saved=0.0)
            for piece in _flash(attention, heads, shard)
        ]
        return [*_context_exchange(heads, shard, 2), *backward]
    return _unfused_backward(heads, shard)


def _saved_input(hidden: int, shard: Shard) -> float:
    """Bytes kept of the input of a column-parallel layer; split over tp with sequence parallel."""
    return shard.element * shard.kept_tokens * hidden


def _rope(name: str, attention: AttentionSpec, heads: LocalHeads, shard: Shard) -> list[Piece]:
    """Rotary embedding and per-head norms read and write queries and keys."""
    width = heads.q + heads.kv
    passes = 2 * attention.rope * (1 if shard.kernels.fused_rope else 3)
    passes += 2 * (attention.qk_norm is not QkNorm.NONE)
    if not passes:
        return []
    moved = passes * shard.element * shard.tokens * width
    return [MemoryBound(name=name, bytes=moved, kind=MemoryClass.POINTWISE, launches=passes)]


def _flash(attention: AttentionSpec, heads: LocalHeads, shard: Shard) -> list[FlashAttention]:
    """Return fused attention.

    With cp the causal mask is balanced: each rank computes its own diagonal block and cp - 1 half
    blocks (queries of half its tokens over all keys of a peer).
    """
    saved = shard.element * shard.tokens * (heads.q + 2 * heads.kv)
    own = AttentionShape(
        batch=shard.micro_batch,
        seq_q=shard.seq,
        seq_k=shard.seq,
        heads=heads.query,
        kv_heads=heads.key_value,
        head_dim=heads.head_dim,
        window=attention.window,
    )
    diagonal = FlashAttention(
        name="attention.core",
        shape=own,
        saved=saved + FP32_BYTES * shard.tokens * heads.query,
    )
    if shard.cp == 1:
        return [diagonal]
    peer = replace(own, seq_q=max(1, shard.seq // 2), causal=False, window=None)
    half = FlashAttention(name="attention.core.peer", shape=peer, count=shard.cp - 1)
    return [diagonal, half]


def _context_exchange(heads: LocalHeads, shard: Shard, tensors: int) -> list[Piece]:
    """Keys and values go round the cp ring, once forward and (with their gradients) twice back."""
    if shard.cp == 1:
        return []
    backward = ".backward" if tensors > 1 else ""
    return [
        CommWork(
            name=f"attention.ring{backward}",
            collective=Collective.SEND_RECV,
            payload=tensors * 2 * shard.element * shard.tokens * heads.kv,
            axis=Axis.CONTEXT,
            group=shard.context_group,
            hidden_by=(f"attention.core{backward}", f"attention.core.peer{backward}"),
            hidden_fraction=1.0,
            count=shard.cp - 1,
        )
    ]


def _unfused_forward(heads: LocalHeads, shard: Shard) -> list[Piece]:
    s, batch, e = shard.seq, shard.micro_batch * heads.query, shard.element
    pairs, dropout = float(s) * s * batch, shard.kernels.dropout
    softmax_passes = 2 if shard.kernels.fused_softmax else 8
    pieces: list[Piece] = [
        Gemm(
            name="attention.scores",
            m=s,
            n=s,
            k=heads.head_dim,
            batch=batch,
            saved=e * shard.tokens * (heads.q + heads.kv),
        ),
        MemoryBound(
            name="attention.softmax",
            bytes=softmax_passes * e * pairs,
            kind=MemoryClass.SOFTMAX,
            launches=softmax_passes // 2,
            saved=e * pairs,
        ),
    ]
    if dropout:
        pieces.append(
            MemoryBound(
                name="attention.dropout",
                bytes=(2 * e + MASK_BYTES) * pairs,
                kind=MemoryClass.POINTWISE,
                saved=(e + MASK_BYTES) * pairs,
            )
        )
    context = Gemm(
        name="attention.context",
        m=s,
        n=heads.head_dim,
        k=s,
        batch=batch,
        saved=e * shard.tokens * heads.kv,
    )
    return [*pieces, context, _transpose(heads, shard)]


def _unfused_backward(heads: LocalHeads, shard: Shard) -> list[Piece]:
    s, d, batch, e = shard.seq, heads.head_dim, shard.micro_batch * heads.query, shard.element
    pairs = float(s) * s * batch
    softmax_passes = 3 if shard.kernels.fused_softmax else 10
    layout = GemmLayout.INPUT_GRADIENT
    products = [("value", s, d, s), ("probability", s, s, d), ("query", s, d, s), ("key", s, d, s)]
    gemms = [
        Gemm(name=f"attention.{name}.grad", m=m, n=n, k=k, batch=batch, layout=layout)
        for name, m, n, k in products
    ]
    elementwise: list[Piece] = [
        MemoryBound(
            name="attention.softmax.backward",
            bytes=softmax_passes * e * pairs,
            kind=MemoryClass.SOFTMAX,
            launches=softmax_passes // 3,
        )
    ]
    if shard.kernels.dropout:
        moved = (2 * e + MASK_BYTES) * pairs
        elementwise.insert(
            0,
            MemoryBound(name="attention.dropout.backward", bytes=moved, kind=MemoryClass.POINTWISE),
        )
    return [_transpose(heads, shard), *gemms[:2], *elementwise, *gemms[2:]]


def _transpose(heads: LocalHeads, shard: Shard) -> MemoryBound:
    """Heads are moved behind the sequence, a copy of the attention output."""
    moved = 2 * shard.element * shard.tokens * heads.q
    return MemoryBound(name="attention.transpose", bytes=moved, kind=MemoryClass.COPY)
