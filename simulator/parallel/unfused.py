"""Attention of older stacks: scores, softmax and context as kernels of their own.

All s x s scores are computed, whatever the mask. With e = 2 bytes and dropout what is kept adds up
to the 5 a s^2 b of Korthikanti et al. 2022, section 4.1.
"""

from __future__ import annotations

from simulator.hardware.kernel_constants import GemmLayout, MemoryClass
from simulator.parallel.core import Core
from simulator.parallel.shard import Shard
from simulator.parallel.work import MASK_BYTES, Piece
from simulator.workload.operator import Gemm, MemoryBound


def unfused_forward(core: Core, shard: Shard) -> list[Piece]:
    """Return QK^T, softmax, dropout and PV."""
    s, batch, e = shard.seq, shard.micro_batch * core.heads, shard.element
    pairs, dropout = float(s) * s * batch, shard.kernels.dropout
    softmax_passes = 2 if shard.kernels.fused_softmax else 8
    pieces: list[Piece] = [
        Gemm(
            name="attention.scores",
            m=s,
            n=s,
            k=core.head_dim,
            batch=batch,
            saved=e * shard.tokens * (core.query_width + core.key_width),
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
        n=core.v_head_dim,
        k=s,
        batch=batch,
        saved=e * shard.tokens * core.value_width,
    )
    return [*pieces, context, _transpose(core, shard)]


def unfused_backward(core: Core, shard: Shard) -> list[Piece]:
    """Return the backward pass of `unfused_forward`."""
    s, d, v = shard.seq, core.head_dim, core.v_head_dim
    batch, e = shard.micro_batch * core.heads, shard.element
    pairs = float(s) * s * batch
    softmax_passes = 3 if shard.kernels.fused_softmax else 10
    layout = GemmLayout.INPUT_GRADIENT
    products = [("value", s, v, s), ("probability", s, s, v), ("query", s, d, s), ("key", s, d, s)]
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
    return [_transpose(core, shard), *gemms[:2], *elementwise, *gemms[2:]]


def _transpose(core: Core, shard: Shard) -> MemoryBound:
    """Heads are moved behind the sequence, a copy of the attention output."""
    moved = 2 * shard.element * shard.tokens * core.output_width
    return MemoryBound(name="attention.transpose", bytes=moved, kind=MemoryClass.COPY)
