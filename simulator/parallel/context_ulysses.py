"""Ulysses attention ("a2a") and its hierarchical form ("a2a+p2p"): shards of heads, not of tokens.

Source: Jacobs et al. 2023, "DeepSpeed Ulysses", section 3.1; Fang and Zhao 2024, "USP: A Unified
Sequence Parallelism Approach", section 3 (the two levels); Transformer Engine 2.8
pytorch/attention/dot_product_attention/context_parallel.py, AttnFuncWithCPAndQKVOA2A.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.context_ring import ring_core
from simulator.parallel.core import Core, CorePieces, core_shape
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import Axis
from simulator.parallel.shard import Shard
from simulator.parallel.work import CommWork, Piece
from simulator.workload.operator import FlashAttention, MemoryBound

_PERMUTE_PASSES = 4
"""Of a tensor that changes its sharding: the halves of its heads laid apart for the all-to-all
(read, write), and the tokens received put into their order (read, write)."""


def ulysses_core(core: Core, shard: Shard) -> CorePieces:
    """Return attention of heads / cp over the whole sequence, between two all-to-alls."""
    seq = shard.seq * shard.cp
    local = _fewer_heads(core, shard.cp)
    kernel = FlashAttention(name="attention.core", shape=core_shape(local, shard, seq=seq))
    return _resharded(core, shard, shard.context_group, CorePieces(kernels=(kernel,)))


def hierarchical_core(core: Core, shard: Shard) -> CorePieces:
    """Return ring attention between groups that have exchanged tokens for heads inside.

    A rank then has heads / cp_inner and cp_inner x seq tokens. What it passes round the outer ring
    is as many bytes a hop as without the inner groups, but there are cp / cp_inner - 1 hops.
    """
    inner = shard.cp_inner
    local, seq = _fewer_heads(core, inner), shard.seq * inner
    ring = ring_core(local, shard, seq=seq, group=shard.context_outer_group)
    return _resharded(core, shard, shard.context_inner_group, ring)


def _fewer_heads(core: Core, ranks: int) -> Core:
    return replace(core, heads=core.heads // ranks, kv_heads=core.kv_heads // ranks)


def _resharded(core: Core, shard: Shard, group: GroupShape, inside: CorePieces) -> CorePieces:
    """Put `inside` between all-to-alls over `group`, of one tensor each.

    Forward: queries, keys and values go over, the output comes back. Backward: the output, which
    is kept as its rank's tokens, and its gradient go over, and three gradients come back. Each
    rank sends e t width bytes of a tensor, its own share included (nccl-tests convention).
    """
    q, k, v, out = core.query_width, core.key_width, core.value_width, core.output_width
    inputs = {"queries": q, "keys": k, "values": v}
    before = _all_to_all("attention.to_heads", inputs, shard, group)
    after = _all_to_all("attention.to_tokens", {"output": out}, shard, group)
    outputs = {"output": out, "grad": out}
    back = _all_to_all("attention.to_heads.backward", outputs, shard, group)
    returns = _all_to_all("attention.to_tokens.backward", inputs, shard, group)
    return CorePieces(
        kernels=inside.kernels,
        before=(*before, *inside.before),
        after=(*inside.after, *after),
        backward_before=(*back, *inside.backward_before),
        backward_after=(*inside.backward_after, *returns),
    )


def _all_to_all(name: str, widths: dict[str, int], shard: Shard, group: GroupShape) -> list[Piece]:
    """Return an all-to-all of each tensor, and the copies before and behind it."""
    size = shard.element * shard.tokens
    moved = _PERMUTE_PASSES * size * sum(widths.values())
    exchanges: list[Piece] = [
        CommWork(
            name=f"{name}.{what}",
            collective=Collective.ALL_TO_ALL,
            payload=size * width,
            axis=Axis.CONTEXT,
            group=group,
            buffer=size * sum(widths.values()),
        )
        for what, width in widths.items()
    ]
    launches = 2 * len(widths)
    permute = MemoryBound(
        name=f"{name}.permute", bytes=moved, kind=MemoryClass.COPY, launches=launches
    )
    return [*exchanges, permute]
