"""Ring attention ("p2p"): keys and values go round while each rank attends to what it has.

Source: Liu et al. 2023, "Ring Attention with Blockwise Transformers", section 3; balanced causal
pieces and the order of sends: Transformer Engine 2.8
pytorch/attention/dot_product_attention/context_parallel.py, AttnFuncWithCPAndKVP2P.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.parallel.core import Core, CorePieces, core_shape
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import Axis
from simulator.parallel.shard import Shard
from simulator.parallel.work import CommWork
from simulator.workload.operator import FlashAttention

_DIAGONAL, _PEER, _LAST = "attention.core", "attention.core.peer", "attention.core.last"
_RING_BUFFERS = 2
"""One that is read, one that is received into."""


def ring_core(core: Core, shard: Shard, *, seq: int, group: GroupShape) -> CorePieces:
    """Return attention of `seq` tokens a rank that pass keys and values round `group`.

    Of the n x n blocks of seq x seq scores a rank computes its diagonal one under the causal mask
    and n - 1 half ones: balanced pieces need either half of the queries or half of the keys.
    Forward, keys and values make n - 1 hops, each under the block before, so that the last block
    hides none. Backward, the ring turns the other way and ends at the diagonal: keys and values
    make n - 1 hops, and their gradients n - 1 hops one block later, under all n blocks.
    """
    kernels = _blocks(core, shard, seq, group.size)
    names = tuple(kernel.name for kernel in kernels)
    tokens = shard.micro_batch * seq
    pair = shard.element * tokens * (core.key_width + core.value_width)
    hop = CommWork(
        name="attention.ring",
        collective=Collective.SEND_RECV,
        payload=pair,
        axis=Axis.CONTEXT,
        group=group,
        hidden_by=tuple(name for name in names if name != _LAST),
        hidden_fraction=1.0,
        count=group.size - 1,
        buffer=_RING_BUFFERS * pair,
    )
    back = replace(
        hop,
        name="attention.ring.backward",
        payload=2 * pair,
        hidden_by=tuple(f"{name}.backward" for name in names),
        buffer=_RING_BUFFERS * 2 * pair,
    )
    return CorePieces(kernels=kernels, before=(hop,), backward_before=(back,))


def _blocks(core: Core, shard: Shard, seq: int, ranks: int) -> tuple[FlashAttention, ...]:
    """Return the diagonal block and the ranks - 1 half blocks, the last of them apart."""
    own = core_shape(core, shard, seq=seq, split=ranks)
    half = replace(own, seq_q=max(1, seq // 2), causal=False)
    blocks = [FlashAttention(name=_DIAGONAL, shape=own)]
    if ranks > 2:  # noqa: PLR2004
        blocks.append(FlashAttention(name=_PEER, shape=half, count=ranks - 2))
    blocks.append(FlashAttention(name=_LAST, shape=half))
    return tuple(blocks)
