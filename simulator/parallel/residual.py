"""Norms, residuals and the tp collectives at the two ends of a branch.

A branch (attention or MLP) opens behind its norm with a column-parallel layer and closes with a
row-parallel one. Without sequence parallel each closes with an all-reduce forward and opens with
one backward; with it they become a reduce-scatter and an all-gather, and the backward pass gathers
the input once more for the weight gradient (Korthikanti et al. 2022, section 4.2.2).
"""

from __future__ import annotations

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.groups import Collective
from simulator.parallel.quantise import gathered_gradient_element, gathered_input_element
from simulator.parallel.shard import Shard
from simulator.parallel.work import ADD_PASSES, MASK_BYTES, Piece
from simulator.workload.job import LoraTarget, Part
from simulator.workload.layer import LayerSpec
from simulator.workload.operator import Gemm, MemoryBound

_NORM_PASSES, _NORM_BACKWARD_PASSES = 2, 3
_EAGER_NORM_PASSES = 10
"""Eager RMSNorm in fp32, in 2-byte passes: cast 3, square 4, mean 2, scale 4, cast 3, weight 2,
less what the cache holds."""


def norm_forward(name: str, hidden: int, shard: Shard) -> list[Piece]:
    """Return a norm that reads and writes (residual_tokens, hidden) and keeps its input."""
    size = shard.element * shard.residual_tokens * hidden
    passes = _NORM_PASSES if shard.kernels.fused_norm else _EAGER_NORM_PASSES
    launches = 1 if shard.kernels.fused_norm else _EAGER_NORM_PASSES // 2
    return [
        MemoryBound(
            name=name, bytes=passes * size, kind=MemoryClass.NORM, launches=launches, saved=size
        )
    ]


def norm_backward(name: str, hidden: int, shard: Shard) -> list[Piece]:
    """Return the norm's backward and the sum with the gradient that skipped the branch."""
    size = shard.element * shard.residual_tokens * hidden
    eager = 1 if shard.kernels.fused_norm else _EAGER_NORM_PASSES // _NORM_PASSES
    return [
        MemoryBound(
            name=f"{name}.backward",
            bytes=eager * _NORM_BACKWARD_PASSES * size,
            kind=MemoryClass.NORM,
            launches=2 * eager,
        ),
        MemoryBound(
            name=f"{name}.residual.grad", bytes=ADD_PASSES * size, kind=MemoryClass.POINTWISE
        ),
    ]


def open_branch_forward(
    name: str, hidden: int, shard: Shard, target: LoraTarget | None = None
) -> list[Piece]:
    """Return the all-gather in front of a column-parallel layer (sequence parallel only).

    It sends what the layer was cast to, but 16 bits where an adapter of `target` reads it too.
    """
    if not shard.sequence_parallel:
        return []
    lora = shard.job.lora
    adapted = lora is not None and target in lora.targets
    element = gathered_input_element(shard, narrow=True, adapted=adapted)
    gather = Collective.ALL_GATHER
    return [shard.tensor_comm(f"{name}.gather", gather, hidden, (name,), element)]


def open_branch_backward(name: str, hidden: int, shard: Shard, gemms: list[Piece]) -> list[Piece]:
    """Return the layer's backward `gemms` with the collectives that run beside them.

    A layer without a weight gradient needs its input no more.
    """
    if shard.tp == 1:
        return gemms
    dgrad, wgrad = f"{name}.dgrad", f"{name}.wgrad"
    if not shard.sequence_parallel:
        reduce = Collective.ALL_REDUCE
        return [*gemms, shard.tensor_comm(f"{name}.grad_input", reduce, hidden, (wgrad,))]
    weights = [piece for piece in gemms if isinstance(piece, Gemm) and piece.name == wgrad]
    narrow = any(gemm.narrow for gemm in weights)
    element = gathered_input_element(shard, narrow=narrow, adapted=False)
    gather = Collective.ALL_GATHER
    regather = shard.tensor_comm(f"{name}.regather", gather, hidden, (dgrad,), element)
    again: list[Piece] = [] if shard.kernels.keeps_gathered or not weights else [regather]
    return [
        *again,
        *gemms,
        shard.tensor_comm(f"{name}.grad_input", Collective.REDUCE_SCATTER, hidden, (wgrad,)),
    ]


def close_branch_forward(name: str, layer: LayerSpec, shard: Shard) -> list[Piece]:
    """Return the row-parallel layer's collective, then bias, dropout and residual add."""
    hidden = layer.hidden_size
    pieces: list[Piece] = []
    if shard.tp > 1:
        reduce = Collective.REDUCE_SCATTER if shard.sequence_parallel else Collective.ALL_REDUCE
        pieces.append(shard.tensor_comm(f"{name}.reduce", reduce, hidden, (name,)))
    return [*pieces, *add_residual_forward(name, layer, shard)]


def add_residual_forward(name: str, layer: LayerSpec, shard: Shard) -> list[Piece]:
    """Return bias, dropout and residual add of a branch whose output is whole on each rank."""
    hidden = layer.hidden_size
    pieces: list[Piece] = []
    if _has_post_norms(layer):
        pieces += norm_forward(f"{name}.post_norm", hidden, shard)
    elements = shard.residual_tokens * hidden
    mask = MASK_BYTES * shard.kernels.dropout
    split = 1 if shard.kernels.fused_residual else 1 + shard.kernels.dropout
    return [
        *pieces,
        MemoryBound(
            name=f"{name}.residual",
            bytes=(ADD_PASSES * shard.element + mask) * elements
            + (split - 1) * 2 * shard.element * elements,
            kind=MemoryClass.POINTWISE,
            launches=split,
            saved=mask * elements,
        ),
    ]


def close_branch_backward(name: str, layer: LayerSpec, shard: Shard) -> list[Piece]:
    """Return dropout's backward and the gather of the gradient (sequence parallel only)."""
    pieces = add_residual_backward(name, layer, shard)
    if shard.sequence_parallel:
        part = Part.ATTENTION if name.startswith("attention") else Part.MLP
        element = gathered_gradient_element(shard, trained=shard.job.trains(part))
        gather, beside = Collective.ALL_GATHER, (f"{name}.dgrad",)
        comm = shard.tensor_comm(f"{name}.gather_grad", gather, layer.hidden_size, beside, element)
        pieces.append(comm)
    return pieces


def add_residual_backward(name: str, layer: LayerSpec, shard: Shard) -> list[Piece]:
    """Return the backward pass of `add_residual_forward`."""
    hidden = layer.hidden_size
    elements = shard.residual_tokens * hidden
    pieces: list[Piece] = []
    if shard.kernels.dropout:
        moved = (2 * shard.element + MASK_BYTES) * elements
        pieces.append(
            MemoryBound(name=f"{name}.dropout.backward", bytes=moved, kind=MemoryClass.POINTWISE)
        )
    if _has_post_norms(layer):
        pieces += norm_backward(f"{name}.post_norm", hidden, shard)[:1]
    return pieces


def _has_post_norms(layer: LayerSpec) -> bool:
    """Whether each branch is normalised once more before it is added (Gemma 2 and 3)."""
    return layer.norms > bool(layer.attention) + bool(layer.mlp)
