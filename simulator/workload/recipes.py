"""What each recipe for 8 and 4 bits does to the tensors of a linear layer.

Sizes are bytes an element, scales included. A linear layer has three products: forward (input
times weight), input gradient (output gradient times weight) and weight gradient (output gradient
times input). Each operand is scaled along the dimension that its product sums over, so that input
and output gradient are read once with scales along rows and once along columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from simulator.workload.job import Recipe

_FP8, _FP4 = 1.0, 0.5
_FP32_SCALE = 4.0
_TILE = 128
"""DeepSeek-V3 (2024), section 3.3.2: 1 x 128 activations, 128 x 128 weights."""
_MX_BLOCK, _NV_BLOCK = 32, 16
"""OCP Microscaling Formats 1.0, section 5.2: a byte for 32 elements; NVFP4: a byte for 16 (NVIDIA
2025, "Pretraining Large Language Models with NVFP4", section 2)."""


class Maximum(StrEnum):
    """Who must agree on the largest element of a tensor."""

    NOBODY = "nobody"
    """Scales are of rows or blocks that one rank holds whole."""
    PASS = "pass"
    """All maxima of a pass in one all-reduce over tp x cp x dp, at the end of the pass."""
    TENSOR = "tensor"
    """Each tensor that is gathered over tp, before it is cast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """How tensors are cast."""

    element: float
    """Of one copy of an activation or a gradient."""
    weight: float
    """Of one copy of a weight."""
    columns: bool
    """Whether a second copy is always scaled along columns; a recipe without it needs one only
    where the GEMMs take no other layout than TN (Hopper), as a transposed copy."""
    searches: bool
    """Whether a pass over the tensor finds its maximum before the cast."""
    norm_casts: bool
    """Whether the norm in front of a layer writes the narrow copy itself."""
    keeps_wide: bool
    """Whether the input stays in 16 bits for the weight gradient, and is cast again."""
    gathers: bool
    """Whether sequence parallelism gathers narrow tensors."""
    caches_weights: bool
    """Whether weights are cast once a step, and both copies stay; else in each pass."""
    gathers_parameters: bool
    """Whether `fp8_parameters` puts 8 bits on the wire."""
    maximum: Maximum


SCALINGS: dict[Recipe, Scaling] = {
    # Transformer Engine 2.x: pytorch/module/layernorm_linear.py, linear.py (norm, gathers, what is
    # saved), pytorch/fp8.py (reduction of maxima at the end of an autocast region).
    Recipe.DELAYED: Scaling(
        element=_FP8,
        weight=_FP8,
        columns=False,
        searches=False,
        norm_casts=True,
        keeps_wide=False,
        gathers=True,
        caches_weights=True,
        gathers_parameters=True,
        maximum=Maximum.PASS,
    ),
    # Transformer Engine 2.x Float8CurrentScaling: its quantizer reduces the maximum over tp where
    # the tensor is gathered.
    Recipe.TENSORWISE: Scaling(
        element=_FP8,
        weight=_FP8,
        columns=False,
        searches=True,
        norm_casts=False,
        keeps_wide=False,
        gathers=True,
        caches_weights=True,
        gathers_parameters=True,
        maximum=Maximum.TENSOR,
    ),
    # torchao float8/float8_linear.py: autograd saves 16-bit tensors; tensor parallelism in
    # torchtitan gathers 16 bits for this recipe. A scale a row of thousands weighs nothing.
    Recipe.ROWWISE: Scaling(
        element=_FP8,
        weight=_FP8,
        columns=True,
        searches=False,
        norm_casts=False,
        keeps_wide=True,
        gathers=False,
        caches_weights=False,
        gathers_parameters=False,
        maximum=Maximum.NOBODY,
    ),
    Recipe.BLOCKWISE: Scaling(
        element=_FP8 + _FP32_SCALE / _TILE,
        weight=_FP8 + _FP32_SCALE / _TILE**2,
        columns=True,
        searches=False,
        norm_casts=False,
        keeps_wide=False,
        gathers=True,
        caches_weights=True,
        gathers_parameters=True,
        maximum=Maximum.NOBODY,
    ),
    # Rows and columns have different scales, so that parameters are gathered in 16 bits and cast
    # behind it: Megatron-Core --reuse-grad-buf-for-mxfp8-param-ag.
    Recipe.MXFP8: Scaling(
        element=_FP8 + 1 / _MX_BLOCK,
        weight=_FP8 + 1 / _MX_BLOCK,
        columns=True,
        searches=False,
        norm_casts=False,
        keeps_wide=False,
        gathers=True,
        caches_weights=True,
        gathers_parameters=False,
        maximum=Maximum.NOBODY,
    ),
    # NVIDIA 2025, section 3: all three products in FP4; random Hadamard transforms, in the kernel
    # of the cast, on the operands of the weight gradient; the scale a tensor needs its maximum.
    Recipe.NVFP4: Scaling(
        element=_FP4 + 1 / _NV_BLOCK,
        weight=_FP4 + 1 / _NV_BLOCK,
        columns=True,
        searches=True,
        norm_casts=False,
        keeps_wide=False,
        gathers=True,
        caches_weights=True,
        gathers_parameters=False,
        maximum=Maximum.TENSOR,
    ),
    # Castro et al. 2025, "Quartet", algorithm 1: all three products in MXFP4, Hadamard transforms
    # in the kernel of the cast.
    Recipe.MXFP4: Scaling(
        element=_FP4 + 1 / _MX_BLOCK,
        weight=_FP4 + 1 / _MX_BLOCK,
        columns=True,
        searches=False,
        norm_casts=False,
        keeps_wide=False,
        gathers=True,
        caches_weights=True,
        gathers_parameters=False,
        maximum=Maximum.NOBODY,
    ),
}
