"""The MLP half of a layer as one rank runs it: up, activation, down, with its tp collectives.

With e = 2, a plain GELU MLP of width 4 h and dropout its saved bytes add up to the s b h 19 of
Korthikanti et al. 2022, section 4.1, plus the norm's 4 s b h counted there apart.
"""

from __future__ import annotations

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.linear import Linear, linear_backward, linear_forward
from simulator.parallel.residual import (
    close_branch_backward,
    close_branch_forward,
    norm_backward,
    norm_forward,
    open_branch_backward,
    open_branch_forward,
)
from simulator.parallel.shard import Shard
from simulator.parallel.work import Piece
from simulator.workload.job import LoraTarget, Part
from simulator.workload.layer import LayerSpec, LinearSpec, MlpSpec, MoeSpec
from simulator.workload.operator import MemoryBound

_UNFUSED_EXTRA_PASSES = 2
"""An activation that is not fused with its bias or its gate writes and reads one tensor more."""


def mlp_forward(layer: LayerSpec, mlp: MlpSpec, shard: Shard) -> list[Piece]:
    """Return the forward pass: norm, up (and gate), activation, down, residual."""
    hidden, width = layer.hidden_size, mlp.intermediate_size // shard.tp
    up, down = _linears(hidden, mlp, shard)
    return [
        *norm_forward("mlp.norm", hidden, shard),
        *open_branch_forward("mlp.up", hidden, shard, LoraTarget.FC1),
        *linear_forward(up, shard),
        activation("mlp.activation", mlp, shard.tokens * width, shard, backward=False),
        *linear_forward(down, shard),
        *close_branch_forward("mlp.down", layer, shard),
    ]


def mlp_backward(layer: LayerSpec, mlp: MlpSpec, shard: Shard) -> list[Piece]:
    """Return the backward pass, in the order in which autograd runs it."""
    hidden, width = layer.hidden_size, mlp.intermediate_size // shard.tp
    up, down = _linears(hidden, mlp, shard)
    return [
        *close_branch_backward("mlp.down", layer, shard),
        *linear_backward(down, shard),
        activation("mlp.activation.backward", mlp, shard.tokens * width, shard, backward=True),
        *open_branch_backward("mlp.up", hidden, shard, linear_backward(up, shard)),
        *norm_backward("mlp.norm", hidden, shard),
    ]


def linear_block_forward(
    name: str, layer: LayerSpec, block: LinearSpec, shard: Shard
) -> list[Piece]:
    """Return the forward pass of one matrix in the place of a branch."""
    hidden = block.hidden_size
    return [
        *norm_forward(f"{name}.norm", hidden, shard),
        *open_branch_forward(name, hidden, shard),
        *linear_forward(_square(name, block, shard), shard),
        *close_branch_forward(name, layer, shard),
    ]


def linear_block_backward(
    name: str, layer: LayerSpec, block: LinearSpec, shard: Shard
) -> list[Piece]:
    """Return the backward pass of one matrix in the place of a branch."""
    hidden = block.hidden_size
    gemms = linear_backward(_square(name, block, shard), shard)
    return [
        *close_branch_backward(name, layer, shard),
        *open_branch_backward(name, hidden, shard, gemms),
        *norm_backward(f"{name}.norm", hidden, shard),
    ]


def _linears(hidden: int, mlp: MlpSpec, shard: Shard) -> tuple[Linear, Linear]:
    """Return the up projection, which holds the gate too, and the down projection."""
    width = mlp.intermediate_size // shard.tp
    up = Linear(
        name="mlp.up",
        tokens=shard.tokens,
        n=2 * width if mlp.gated else width,
        k=hidden,
        part=Part.MLP,
        kept_tokens=shard.kept_tokens,
        bias=mlp.bias,
        target=LoraTarget.FC1,
    )
    down = Linear(
        name="mlp.down",
        tokens=shard.tokens,
        n=hidden,
        k=width,
        part=Part.MLP,
        bias=mlp.bias,
        target=LoraTarget.FC2,
    )
    return up, down


def _square(name: str, block: LinearSpec, shard: Shard) -> Linear:
    return Linear(
        name=name,
        tokens=shard.tokens,
        n=block.hidden_size // shard.tp,
        k=block.hidden_size,
        part=Part.ATTENTION if name.startswith("attention") else Part.MLP,
        kept_tokens=shard.kept_tokens,
        bias=block.bias,
    )


def activation(
    name: str, mlp: MlpSpec | MoeSpec, elements: float, shard: Shard, *, backward: bool
) -> MemoryBound:
    """Return the kernel of an activation that writes `elements` numbers.

    Plain, it reads and writes them, and backward reads two and writes one. Gated, it reads two
    and writes one, and backward reads three and writes two. Not fused, the product keeps the
    activated gate beside gate and value.
    """
    passes = (5 if backward else 3) if mlp.gated else (3 if backward else 2)
    launches = 1
    kept = 2 if mlp.gated else 1
    if not shard.kernels.fused_activation:
        passes += _UNFUSED_EXTRA_PASSES
        launches += 1
        kept += mlp.gated
    size = shard.element * elements
    return MemoryBound(
        name=name,
        bytes=passes * size,
        kind=MemoryClass.POINTWISE,
        launches=launches,
        saved=0.0 if backward else size * kept,
    )
