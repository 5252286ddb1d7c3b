"""What a stack runs between and behind the products of its experts in kernels of their own.

Clamping in front of a gated activation, and the bias of the second product, which a token gets
times the router's weight. Passes are reads and writes of a tensor. r rows of all local experts,
w width of one (cut by etp), h hidden, e bytes an activation, q of a router's weight: e, or 4 where
the library that sends tokens knows float32 weights only (DeepEP, HybridEP).

Source: Megatron-Core 0.14-0.16 core/fusions/fused_bias_geglu.py (weighted_bias_quick_geglu_impl),
core/transformer/moe/experts.py (TEGroupedMLP._apply_bias) and token_dispatcher.py, run by
PyTorch's autograd.
"""

from __future__ import annotations

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.routing import Tokens
from simulator.parallel.shard import Shard
from simulator.parallel.work import Piece
from simulator.workload.job import Dispatcher
from simulator.workload.layer import MoeSpec
from simulator.workload.operator import MemoryBound

CLAMP = "moe.experts.activation.clamp"
_CLAMP_PASSES, _CLAMP_BACKWARD_PASSES, _CLAMP_LAUNCHES = 8, 10, 3
"""Of width w. Gate and value are each clamped (2 + 2) and concatenated (4). Backward, each
gradient is masked by its input (3 + 3); the gradients of the two halves are concatenated (4)."""
_PRODUCT_PASSES, _SUM_PASSES = 2, 1
"""A product is read and written, a sum read."""
_BIAS_LAUNCHES, _BIAS_BACKWARD_LAUNCHES = 2, 4
"""Of an expert: weight x bias and its addition; a product and a sum for either's gradient."""
_WEIGHT_BYTES = 4.0


def clamp_forward(moe: MoeSpec, tokens: Tokens, shard: Shard) -> list[Piece]:
    """Return the kernels that clamp what the activation reads; none where it does so itself.

    Their input, 2 w a row, stays for the backward pass beside what the activation keeps.
    """
    if shard.kernels.fused_clamp or not moe.clamped:
        return []
    size = _size(moe.intermediate_size // shard.expert_tp, tokens, shard)
    return [_kernel(CLAMP, _CLAMP_PASSES * size, _CLAMP_LAUNCHES, saved=2 * size)]


def clamp_backward(moe: MoeSpec, tokens: Tokens, shard: Shard) -> list[Piece]:
    """Return the backward pass of `clamp_forward`."""
    if shard.kernels.fused_clamp or not moe.clamped:
        return []
    size = _size(moe.intermediate_size // shard.expert_tp, tokens, shard)
    return [_kernel(f"{CLAMP}.backward", _CLAMP_BACKWARD_PASSES * size, _CLAMP_LAUNCHES)]


def output_bias_forward(moe: MoeSpec, tokens: Tokens, shard: Shard) -> list[Piece]:
    """Return the kernels that add the bias of the experts' outputs, one expert after another.

    An expert: weight x bias is written (q), read and added to the output (q + e), written (q). The
    outputs of all are concatenated (2 q) and, where q > e, cast back (q + e).
    """
    if shard.kernels.fused_expert_bias or not moe.bias:
        return []
    e, q = shard.element, _weight_bytes(shard)
    count = float(tokens.computed * moe.hidden_size)
    each = _each("moe.experts.bias", 3 * q + e, _BIAS_LAUNCHES, count, tokens)
    together = 2 * q + (q + e if q > e else 0.0)
    return [each, _kernel("moe.experts.bias.concatenate", together * count, 1 + (q > e))]


def output_bias_backward(moe: MoeSpec, tokens: Tokens, shard: Shard) -> list[Piece]:
    """Return the backward pass of `output_bias_forward`.

    Gradients of an expert's bias and of its weights are products summed (3 q each). Where q > e
    the gradient is cast to q (q + e) and each expert's back (q + e). Those of all are concatenated
    (2 e).
    """
    if shard.kernels.fused_expert_bias or not moe.bias:
        return []
    e, q = shard.element, _weight_bytes(shard)
    count, cast = float(tokens.computed * moe.hidden_size), q + e if q > e else 0.0
    moved = 2 * (_PRODUCT_PASSES + _SUM_PASSES) * q + cast
    launches = _BIAS_BACKWARD_LAUNCHES + (q > e)
    each = _each("moe.experts.bias.backward", moved, launches, count, tokens)
    name = "moe.experts.bias.backward.concatenate"
    return [each, _kernel(name, (2 * e + cast) * count, 1 + (q > e))]


def _weight_bytes(shard: Shard) -> float:
    sent_wide = shard.job.moe.dispatcher is Dispatcher.FLEX
    return max(shard.element, _WEIGHT_BYTES) if sent_wide else shard.element


def _each(name: str, moved: float, launches: int, count: float, tokens: Tokens) -> MemoryBound:
    """Return kernels for each expert that move `moved` bytes for each of `count` numbers."""
    experts = tokens.local_experts
    return _kernel(name, moved * count / experts, launches, count=experts)


def _size(width: int, tokens: Tokens, shard: Shard) -> float:
    """Return the bytes of (rows of all local experts, width)."""
    return shard.element * tokens.computed * width


def _kernel(
    name: str, moved: float, launches: int, *, count: int = 1, saved: float = 0.0
) -> MemoryBound:
    kind = MemoryClass.POINTWISE
    return MemoryBound(
        name=name,
        bytes=moved,
        kind=kind,
        launches=launches,
        count=count,
        saved=saved,
        eager=True,
    )
