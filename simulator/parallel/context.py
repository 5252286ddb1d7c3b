"""The attention core of one rank, and what context-parallel ranks exchange for it.

`core_forward` and `core_backward` serve every attention that ends in softmax(Q K^T) V, whatever
projects into it: see `Core` for its widths. With cp ranks, rank r holds the pieces r and
2 cp - 1 - r of a sequence cut in 2 cp, which balances causal masks. How ranks reach each other's
keys is `layout.cp_comm_type`, one file each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from simulator.parallel.context_gather import gathered_core
from simulator.parallel.context_ring import ring_core
from simulator.parallel.context_ulysses import hierarchical_core, ulysses_core
from simulator.parallel.core import Core, CorePieces, core_shape
from simulator.parallel.layout import ContextExchange
from simulator.parallel.shard import Shard
from simulator.parallel.unfused import unfused_backward, unfused_forward
from simulator.parallel.work import FP32_BYTES, Piece
from simulator.workload.operator import FlashAttention
from simulator.workload.stack_choices import AttentionKernel


def core_forward(core: Core, shard: Shard) -> list[Piece]:
    """Return QK^T, softmax and PV of one micro-batch, fused or as separate kernels.

    The fused core keeps queries, keys and values, and the log-sum-exp of each query and head; where
    the stack's queries are a view of the projection's output, the keys and values in it too.
    """
    if shard.kernels.attention is AttentionKernel.UNFUSED:
        return unfused_forward(core, shard)
    fused = _fused(core, shard)
    widths = core.query_width + core.key_width + core.value_width
    if shard.kernels.keeps_projection and core.heads == core.kv_heads:
        widths += core.key_width + core.value_width
    saved = shard.tokens * (shard.element * widths + FP32_BYTES * core.heads)
    first, *others = fused.kernels
    return [*fused.before, replace(first, saved=saved), *others, *fused.after]


def core_backward(core: Core, shard: Shard) -> list[Piece]:
    """Return the backward pass of `core_forward`."""
    if shard.kernels.attention is AttentionKernel.UNFUSED:
        return unfused_backward(core, shard)
    fused = _fused(core, shard)
    kernels = (replace(k, name=f"{k.name}.backward", backward=True) for k in fused.kernels)
    return [*fused.backward_before, *kernels, *fused.backward_after]


def _fused(core: Core, shard: Shard) -> CorePieces:
    if shard.cp == 1:
        whole = FlashAttention(name="attention.core", shape=core_shape(core, shard, seq=shard.seq))
        return CorePieces(kernels=(whole,))
    if shard.kernels.repeats_kv:
        core = replace(core, kv_heads=core.heads)
    match shard.cp_comm_type:
        case ContextExchange.RING:
            return ring_core(core, shard, seq=shard.seq, group=shard.context_group)
        case ContextExchange.ALL_GATHER:
            return gathered_core(core, shard)
        case ContextExchange.ULYSSES:
            return ulysses_core(core, shard)
        case ContextExchange.HIERARCHICAL:
            return hierarchical_core(core, shard)
        case _:
            assert_never(shard.cp_comm_type)
