"""A linear layer on one rank: one GEMM forward, two backward, and its gradient's accumulation."""

from __future__ import annotations

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.shard import Shard
from simulator.parallel.work import Piece
from simulator.workload.operator import Gemm, MemoryBound, backward_gemms


def linear_forward(name: str, tokens: int, n: int, k: int, saved: float) -> list[Piece]:
    """Return the forward GEMM of a (k, n) weight on (tokens, k); `saved` bytes of input stay."""
    return [Gemm(name=name, m=tokens, n=n, k=k, saved=saved)]


def linear_backward(
    name: str, tokens: int, n: int, k: int, shard: Shard, *, bias: bool
) -> list[Piece]:
    """Return input gradient, weight gradient, and what the stack runs beside them.

    A bias gradient is a sum over (tokens, n). A weight gradient that is not accumulated inside its
    GEMM costs `accumulate_bytes` a parameter.
    """
    pieces: list[Piece] = [*backward_gemms(Gemm(name=name, m=tokens, n=n, k=k))]
    if shard.kernels.accumulate_bytes:
        moved = shard.kernels.accumulate_bytes * n * k
        pieces.append(
            MemoryBound(name=f"{name}.accumulate", bytes=moved, kind=MemoryClass.POINTWISE)
        )
    if bias:
        moved = shard.element * tokens * n
        pieces.append(
            MemoryBound(name=f"{name}.bias.grad", bytes=moved, kind=MemoryClass.POINTWISE)
        )
    return pieces
