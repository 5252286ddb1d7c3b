"""The router of a mixture of experts: scores, the choice of experts, the balancing loss.

Source: Megatron-LM core/transformer/moe/router.py (TopKRouter) and moe_utils.py
(topk_softmax_with_capacity, switch_load_balancing_loss_func).
"""

from __future__ import annotations

from dataclasses import replace

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.groups import Collective
from simulator.parallel.layout import Axis
from simulator.parallel.linear import Linear, linear_backward, linear_forward
from simulator.parallel.shard import Shard
from simulator.parallel.work import FP32_BYTES, CommWork, Piece
from simulator.workload.job import Part
from simulator.workload.layer import MoeSpec
from simulator.workload.operator import Gemm, MemoryBound

_MAP_BYTES = 1.0
"""Of an entry of the (tokens, experts) map of choices."""
_CHOICE_PASSES, _CHOICE_LAUNCHES = 6, 7
"""Scores in fp32: cast (write), softmax or sigmoid (read, write), top-k (read), and the two
scatters of weights and map (write, write); their kernels, and the two buffers' zeros."""
_CHOICE_BACKWARD_PASSES, _CHOICE_BACKWARD_LAUNCHES = 4, 4
"""Gather from the scattered gradient (read), zeros and scatter (write), softmax (read, write)."""
_LOSS_PASSES, _LOSS_LAUNCHES = 4, 6
"""Softmax of all scores (read, write), their sum and the map's over tokens (read, read); the
product, its scaling and the loss are small."""
_LOSS_BACKWARD_PASSES, _LOSS_BACKWARD_LAUNCHES = 3, 3
"""The gradient spread over the tokens (write), softmax backward (read, write)."""


def router_forward(moe: MoeSpec, shard: Shard) -> list[Piece]:
    """Return scores (own tokens, experts), the choice of k, and the auxiliary loss.

    The input stays for the weight gradient; so do the scores in fp32 and the map.
    """
    scores = _scores(moe, shard)
    kept = (FP32_BYTES + _MAP_BYTES) * scores
    pieces = [
        *_uncounted(linear_forward(_linear(moe, shard), shard)),
        _passes("choice", _CHOICE_PASSES, _CHOICE_LAUNCHES, scores, saved=kept),
    ]
    if not shard.job.moe.aux_loss:
        return pieces
    kept = FP32_BYTES * scores
    loss = _passes("aux_loss", _LOSS_PASSES, _LOSS_LAUNCHES, scores, saved=kept)
    return [*pieces, loss, *_count_reduction(moe, shard)]


def router_backward(moe: MoeSpec, shard: Shard) -> list[Piece]:
    """Return the backward pass of `router_forward`."""
    scores = _scores(moe, shard)
    pieces: list[Piece] = []
    if shard.job.moe.aux_loss:
        passes, launches = _LOSS_BACKWARD_PASSES, _LOSS_BACKWARD_LAUNCHES
        pieces.append(_passes("aux_loss.backward", passes, launches, scores))
    passes, launches = _CHOICE_BACKWARD_PASSES, _CHOICE_BACKWARD_LAUNCHES
    return [
        *pieces,
        _passes("choice.backward", passes, launches, scores),
        *_uncounted(linear_backward(_linear(moe, shard), shard)),
    ]


def _linear(moe: MoeSpec, shard: Shard) -> Linear:
    """Every rank holds the whole router and applies it to its own tokens."""
    return Linear(
        name="moe.router",
        tokens=round(shard.residual_tokens),
        n=moe.experts,
        k=moe.hidden_size,
        part=Part.MLP,
        narrow=False,
    )


def _scores(moe: MoeSpec, shard: Shard) -> float:
    return shard.residual_tokens * moe.experts


def _passes(
    name: str, passes: int, launches: int, scores: float, saved: float = 0.0
) -> MemoryBound:
    return MemoryBound(
        name=f"moe.router.{name}",
        bytes=passes * FP32_BYTES * scores,
        kind=MemoryClass.SOFTMAX,
        launches=launches,
        saved=saved,
    )


def _uncounted(pieces: list[Piece]) -> list[Piece]:
    """MFU leaves the router out, as Megatron-LM's count does."""
    return [replace(p, model_share=0.0) if isinstance(p, Gemm) else p for p in pieces]


def _count_reduction(moe: MoeSpec, shard: Shard) -> list[Piece]:
    """The loss is that of the whole sequence: its slices add up their tokens an expert."""
    if shard.tp == 1:
        return []
    return [
        CommWork(
            name="moe.router.aux_loss.reduce",
            collective=Collective.ALL_REDUCE,
            payload=FP32_BYTES * moe.experts,
            axis=Axis.TENSOR,
            group=shard.tensor_group,
        )
    ]
