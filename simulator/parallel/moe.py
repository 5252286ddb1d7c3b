"""A mixture of experts in the place of an MLP, as one rank runs it, forward and backward.

Norm, router, dispatch, the rank's experts as one grouped product, combine, shared experts,
residual. Names tell modules apart: `moe.router`, `moe.dispatch`, `moe.experts`, `moe.combine`,
`moe.shared`.

Source: Megatron-LM core/transformer/moe (moe_layer.py, router.py, experts.py, shared_experts.py).
"""

from __future__ import annotations

from dataclasses import replace

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.dispatch import Trip, travel
from simulator.parallel.expert_kernels import (
    clamp_backward,
    clamp_forward,
    output_bias_backward,
    output_bias_forward,
)
from simulator.parallel.linear import Linear, linear_backward, linear_forward
from simulator.parallel.mlp import activation
from simulator.parallel.residual import (
    add_residual_backward,
    add_residual_forward,
    norm_backward,
    norm_forward,
)
from simulator.parallel.router import router_backward, router_forward
from simulator.parallel.routing import Tokens, count_tokens
from simulator.parallel.shard import Shard
from simulator.parallel.shared_experts import shared_backward, shared_forward
from simulator.parallel.work import ADD_PASSES, CommWork, Piece
from simulator.workload.job import LoraTarget, Part
from simulator.workload.layer import LayerSpec, MoeSpec
from simulator.workload.operator import Gemm, MemoryBound


def moe_forward(layer: LayerSpec, moe: MoeSpec, shard: Shard) -> list[Piece]:
    """Return the forward pass over (residual_tokens, hidden)."""
    return [
        *norm_forward("moe.norm", layer.hidden_size, shard),
        *router_forward(moe, shard),
        *travel(Trip(name="dispatch", moe=moe, shard=shard)),
        *_experts_forward(moe, shard),
        *travel(Trip(name="combine", moe=moe, shard=shard)),
        *shared_forward(moe, shard),
        *_add_shared(moe, shard),
        *add_residual_forward("moe.combine", layer, shard),
    ]


def moe_backward(layer: LayerSpec, moe: MoeSpec, shard: Shard) -> list[Piece]:
    """Return the backward pass, in the order in which autograd runs it."""
    return [
        *add_residual_backward("moe.combine", layer, shard),
        *shared_backward(moe, shard),
        *travel(Trip(name="combine", moe=moe, shard=shard, backward=True)),
        *_experts_backward(moe, shard),
        *travel(Trip(name="dispatch", moe=moe, shard=shard, backward=True)),
        *router_backward(moe, shard),
        _add_gradients(moe, shard),
        *norm_backward("moe.norm", layer.hidden_size, shard),
    ]


def _experts_forward(moe: MoeSpec, shard: Shard) -> list[Piece]:
    """Return up (and gate), activation with the router's weights, down."""
    tokens = count_tokens(moe, shard)
    up, down = _linears(moe, tokens, shard)
    elements = float(tokens.computed * down.k)
    return [
        *_run(linear_forward(up, shard), tokens, shard),
        *clamp_forward(moe, tokens, shard),
        activation("moe.experts.activation", moe, elements, shard, backward=False),
        *_run(linear_forward(down, shard), tokens, shard),
        *output_bias_forward(moe, tokens, shard),
    ]


def _experts_backward(moe: MoeSpec, shard: Shard) -> list[Piece]:
    tokens = count_tokens(moe, shard)
    up, down = _linears(moe, tokens, shard)
    elements = float(tokens.computed * down.k)
    return [
        *output_bias_backward(moe, tokens, shard),
        *_run(linear_backward(down, shard), tokens, shard),
        activation("moe.experts.activation.backward", moe, elements, shard, backward=True),
        *clamp_backward(moe, tokens, shard),
        *_run(linear_backward(up, shard), tokens, shard),
    ]


def _linears(moe: MoeSpec, tokens: Tokens, shard: Shard) -> tuple[Linear, Linear]:
    """Return the products of (per_expert, h) by (h, w / etp) and back, one for each expert."""
    hidden, width = moe.hidden_size, moe.intermediate_size // shard.expert_tp
    up = Linear(
        name="moe.experts.up",
        tokens=tokens.per_expert,
        n=2 * width if moe.gated else width,
        k=hidden,
        part=Part.EXPERTS,
        bias=moe.bias,
        target=LoraTarget.FC1,
        batch=tokens.local_experts if shard.kernels.grouped_gemm else 1,
    )
    down = replace(up, name="moe.experts.down", n=hidden, k=width, target=LoraTarget.FC2)
    return up, replace(down, bias=moe.bias and shard.kernels.fused_expert_bias)


def _run(pieces: list[Piece], tokens: Tokens, shard: Shard) -> list[Piece]:
    """Return pieces of all experts: as grouped products, or one expert after another."""
    count = 1 if shard.kernels.grouped_gemm else tokens.local_experts
    return [_of_experts(piece, tokens, count) for piece in pieces]


def _of_experts(piece: Piece, tokens: Tokens, count: int) -> Piece:
    if isinstance(piece, CommWork):
        return replace(piece, count=piece.count * count)
    repeated = replace(piece, count=piece.count * count, saved=piece.saved * count)
    if not isinstance(repeated, Gemm):
        return repeated
    grouped = count == 1 and tokens.local_experts > 1
    return replace(repeated, grouped=grouped, model_share=tokens.model_share)


def _add_shared(moe: MoeSpec, shard: Shard) -> list[Piece]:
    """Return the sum of what the routed and the shared experts give."""
    return [_sum("moe.combine.add", 1, moe, shard)] if moe.shared_intermediate_size else []


def _add_gradients(moe: MoeSpec, shard: Shard) -> Piece:
    """Return the sum of the input's gradients: of the rows sent, the router, the shared experts."""
    terms = 2 if moe.shared_intermediate_size else 1
    return _sum("moe.dispatch.add.backward", terms, moe, shard)


def _sum(name: str, terms: int, moe: MoeSpec, shard: Shard) -> MemoryBound:
    rows = terms * ADD_PASSES * shard.residual_tokens
    moved = shard.element * rows * moe.hidden_size
    return MemoryBound(name=name, bytes=moved, kind=MemoryClass.POINTWISE, launches=terms)
