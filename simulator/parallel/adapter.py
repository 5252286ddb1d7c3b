"""Low-rank adapters beside frozen linear layers: y = x W + x A B, of which A and B are trained.

A is (k, r), B is (r, n). As Megatron-Bridge's ParallelLinearAdapter (NeMo 2.x
nemo/collections/llm/peft/utils.py) cuts them over tp:

* beside a column-parallel layer A is column parallel, its output (tokens, r) gathered, and B is
  column parallel, so that its output is already cut as the layer's;
* beside a row-parallel layer A is row parallel, its output all-reduced, and B is column parallel,
  its output (tokens, n) gathered, then cut along the sequence where that is parallel.

Both run in 16 bits. Dropout in front of A and the scale behind B are not counted.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.groups import Collective
from simulator.parallel.shard import Shard
from simulator.parallel.weights import Linear, Split
from simulator.parallel.work import ADD_PASSES, CommWork, Piece
from simulator.workload.operator import Gemm, MemoryBound, backward_gemms


def adapter_forward(linear: Linear, rank: int, shard: Shard) -> list[Piece]:
    """Return both products and the sum with the layer's output, with their collectives.

    What stays for the weight gradients: the input of A, in 16 bits and gathered, and that of B.
    """
    down, up = _products(linear, rank, shard)
    sum_tokens = float(linear.tokens)
    if linear.split is Split.ROW and shard.sequence_parallel:
        sum_tokens /= shard.tp
    add = _add(f"{linear.name}.lora.add", sum_tokens * linear.n, shard)
    if shard.tp == 1 or linear.split is Split.WHOLE:
        return [down, up, add]
    if linear.split is Split.COLUMN:
        name = f"{linear.name}.lora.rank_gather"
        return [down, _comm(name, Collective.ALL_GATHER, rank, linear, shard), up, add]
    reduce = _comm(f"{linear.name}.lora.reduce", Collective.ALL_REDUCE, rank, linear, shard)
    name = f"{linear.name}.lora.out_gather"
    return [down, reduce, up, _comm(name, Collective.ALL_GATHER, linear.n, linear, shard), add]


def adapter_backward(linear: Linear, rank: int, shard: Shard) -> list[Piece]:
    """Return the gradients of B, of A and of the input, and the sum with the layer's own.

    The input gradient of B is summed over tp, since B is cut by columns. That of A is, beside a
    column-parallel layer, added to the layer's before both are reduced where sequences are
    parallel, and reduced alone where they are not.
    """
    down, up = _products(linear, rank, shard)
    cut = shard.tp > 1 and linear.split is not Split.WHOLE
    pieces: list[Piece] = [*_backward(up, shard)]
    if cut:
        name = f"{linear.name}.lora.rank_grad"
        pieces.append(_comm(name, Collective.ALL_REDUCE, rank, linear, shard))
    pieces += _backward(down, shard)
    if cut and linear.split is Split.COLUMN and not shard.sequence_parallel:
        name = f"{linear.name}.lora.input_grad"
        pieces.append(_comm(name, Collective.ALL_REDUCE, linear.k, linear, shard))
    add = _add(f"{linear.name}.lora.grad.add", float(linear.tokens) * linear.k, shard)
    return [*pieces, add]


def adapter_parameters(linear: Linear, rank: int, tp: int) -> float:
    """Return the parameters of A and B on one rank.

    Each is cut along one dimension: A has k r / tp and B r n / tp, of which k or n is cut already.
    """
    k, n = linear.k, linear.n
    match linear.split:
        case Split.COLUMN:
            return k * rank / tp + rank * n
        case Split.ROW:
            return k * rank + rank * n / tp
        case Split.WHOLE:
            return float(rank * (k + n))


def _products(linear: Linear, rank: int, shard: Shard) -> tuple[Gemm, Gemm]:
    """Return the products with A and with B as one rank runs them."""
    tokens, tp = linear.tokens, shard.tp
    column, row = linear.split is Split.COLUMN, linear.split is Split.ROW
    down = Gemm(
        name=f"{linear.name}.lora.a",
        m=tokens,
        n=rank // tp if column else rank,
        k=linear.k,
        saved=shard.element * tokens * linear.k,
    )
    up = Gemm(
        name=f"{linear.name}.lora.b",
        m=tokens,
        n=linear.n // tp if row else linear.n,
        k=rank,
        saved=shard.element * tokens * rank,
    )
    return down, up


def _backward(gemm: Gemm, shard: Shard) -> list[Piece]:
    pieces: list[Piece] = [*backward_gemms(gemm)]
    if shard.kernels.accumulate_bytes:
        moved = shard.kernels.accumulate_bytes * gemm.n * gemm.k
        name = f"{gemm.name}.accumulate"
        pieces.append(MemoryBound(name=name, bytes=moved, kind=MemoryClass.POINTWISE))
    return pieces


def _comm(name: str, collective: Collective, width: int, linear: Linear, shard: Shard) -> CommWork:
    one = shard.tensor_comm(name, collective, 1, ())
    return replace(one, payload=shard.element * linear.tokens * width, hidden_fraction=0.0)


def _add(name: str, elements: float, shard: Shard) -> MemoryBound:
    moved = ADD_PASSES * shard.element * elements
    return MemoryBound(name=name, bytes=moved, kind=MemoryClass.POINTWISE)
