"""All-gather attention ("all_gather"): each rank gathers all keys and values, then attends.

Source: Llama Team 2024, "The Llama 3 Herd of Models", section 3.3.2; Transformer Engine 2.8
pytorch/attention/dot_product_attention/context_parallel.py, AttnFuncWithCPAndKVAllGather.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.core import Core, CorePieces, core_shape
from simulator.parallel.groups import Collective
from simulator.parallel.layout import Axis
from simulator.parallel.shard import Shard
from simulator.parallel.work import CommWork, Piece
from simulator.workload.operator import AttentionShape, FlashAttention, MemoryBound

_REORDER_PASSES = 4
"""Of gathered keys and values: put into the order of the sequence (read, write), and the part that
each piece sees copied out (read, write; the two parts together are one whole)."""
_GRADIENT_PASSES = 5
"""Of gathered gradients: the parts of the two pieces added to zeros (read, read, write), and put
back into the order of the ranks (read, write)."""


def gathered_core(core: Core, shard: Shard) -> CorePieces:
    """Return attention of a rank's two pieces over the keys they see, all of them gathered.

    Keys and values are gathered one after the other, an output of e t cp k bytes each, and nothing
    hides it. Only the rank's own are kept: the backward pass gathers them again, and
    reduce-scatters the gradients of all of them.
    """
    whole = shard.element * shard.tokens * shard.cp
    both = whole * (core.key_width + core.value_width)
    forward = _exchange("attention.gather", Collective.ALL_GATHER, core, shard)
    again = _exchange("attention.regather", Collective.ALL_GATHER, core, shard)
    scatter = _exchange("attention.scatter", Collective.REDUCE_SCATTER, core, shard)
    # The backward pass holds all keys and values beside all of their gradients.
    again = [replace(comm, buffer=2 * both) for comm in again]
    pieces = gathered_shapes(core, shard, _slowest_rank(core, shard))
    return CorePieces(
        kernels=tuple(
            FlashAttention(name=f"attention.core.{place}", shape=shape)
            for place, shape in zip(("early", "late"), pieces, strict=True)
        ),
        before=(*forward, _copies("attention.reorder", _REORDER_PASSES * both)),
        backward_before=(*again, _copies("attention.reorder.again", _REORDER_PASSES * both)),
        backward_after=(_copies("attention.reorder.grad", _GRADIENT_PASSES * both), *scatter),
    )


def gathered_shapes(core: Core, shard: Shard, rank: int) -> tuple[AttentionShape, AttentionShape]:
    """Return attention of the pieces `rank` and 2 cp - 1 - rank over the keys they see.

    Piece j of c tokens sees the keys before its end, (j + 1) c of them, and with a window w no
    more than c + w - 1.
    """
    pieces = 2 * shard.cp
    plain = core_shape(core, shard, seq=shard.seq * shard.cp)
    tokens = shard.seq // 2
    early, late = (
        replace(plain, seq_q=tokens, seq_k=_keys((piece + 1) * tokens, tokens, plain.window))
        for piece in (rank, pieces - 1 - rank)
    )
    return early, late


def _keys(before: int, tokens: int, window: int | None) -> int:
    return before if window is None else min(before, tokens + window - 1)


def _slowest_rank(core: Core, shard: Shard) -> int:
    """Return the rank that sets the pace.

    Without a window all have the same scores, and the first has the longest row of keys. With one
    the first piece of a sequence sees fewer keys, so that the last rank, whose pieces lie in the
    middle, has the most.
    """
    return 0 if core.window is None else shard.cp - 1


def _exchange(name: str, collective: Collective, core: Core, shard: Shard) -> list[CommWork]:
    """Return one collective for the keys of all ranks and one for the values."""
    whole = shard.element * shard.tokens * shard.cp
    widths = {"keys": core.key_width, "values": core.value_width}
    return [
        CommWork(
            name=f"{name}.{what}",
            collective=collective,
            payload=whole * width,
            axis=Axis.CONTEXT,
            group=shard.context_group,
            buffer=whole * (core.key_width + core.value_width),
        )
        for what, width in widths.items()
    ]


def _copies(name: str, moved: float) -> Piece:
    return MemoryBound(name=name, bytes=moved, kind=MemoryClass.COPY)
