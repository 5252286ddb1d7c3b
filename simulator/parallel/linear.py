"""A linear layer on one rank: one GEMM forward, two backward, and its gradient's accumulation."""

from __future__ import annotations

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.adapter import adapter_backward, adapter_forward
from simulator.parallel.quantise import (
    backward_casts,
    forward_casts,
    has_adapter,
    kept_element,
    scaling_of,
)
from simulator.parallel.shard import Shard
from simulator.parallel.weights import Linear, Split
from simulator.parallel.work import Piece
from simulator.workload.operator import Gemm, MemoryBound, backward_gemms

__all__ = ["Linear", "Split", "linear_backward", "linear_forward"]


def linear_forward(linear: Linear, shard: Shard) -> list[Piece]:
    """Return the forward GEMM, the casts in front of it and the adapter beside it.

    The input stays for the weight gradient, where there is one.
    """
    kept = linear.tokens if linear.kept_tokens is None else linear.kept_tokens
    saved = kept_element(linear, shard) * kept * linear.k * linear.batch
    trained = shard.job.trains(linear.part)
    pieces = [
        *forward_casts(linear, shard),
        _gemm(linear, shard, saved=saved if trained else 0.0),
    ]
    lora = shard.job.lora
    if lora is not None and has_adapter(linear, shard):
        pieces += adapter_forward(linear, lora.rank, shard)
    return pieces


def linear_backward(linear: Linear, shard: Shard) -> list[Piece]:
    """Return input gradient, weight gradient, and what the stack runs beside them.

    A bias gradient is a sum over (tokens, n). A weight gradient that is not accumulated inside its
    GEMM costs `accumulate_bytes` a parameter. Frozen weights have none of it; their input gradient
    is computed wherever they stand, also below the first trained weight, where autograd stops.
    """
    n, batch = linear.n, linear.batch
    input_gradient, weight_gradient = backward_gemms(_gemm(linear, shard, saved=0.0))
    pieces: list[Piece] = [*backward_casts(linear, shard), input_gradient]
    lora = shard.job.lora
    if not shard.job.trains(linear.part):
        adapted = lora is not None and has_adapter(linear, shard)
        return pieces + (adapter_backward(linear, lora.rank, shard) if lora and adapted else [])
    pieces.append(weight_gradient)
    if shard.kernels.accumulate_bytes:
        moved = shard.kernels.accumulate_bytes * linear.parameters
        pieces.append(_pointwise(f"{linear.name}.accumulate", moved))
    if linear.bias:
        moved = shard.element * linear.tokens * n * batch
        pieces.append(_pointwise(f"{linear.name}.bias.grad", moved))
    return pieces


def _gemm(linear: Linear, shard: Shard, *, saved: float) -> Gemm:
    return Gemm(
        name=linear.name,
        m=linear.tokens,
        n=linear.n,
        k=linear.k,
        batch=linear.batch,
        narrow=scaling_of(linear, shard) is not None,
        saved=saved,
    )


def _pointwise(name: str, moved: float) -> MemoryBound:
    return MemoryBound(name=name, bytes=moved, kind=MemoryClass.POINTWISE)
