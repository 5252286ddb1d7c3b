"""The attention half of a layer as one rank runs it: operators, tp and cp collectives.

Shapes: t = micro_batch x seq_length / cp tokens, h hidden, q = heads x head_dim / tp and
kv = key-value heads x head_dim / tp local widths, e bytes an activation. The byte counts follow
Korthikanti et al. 2022, section 4.1: with e = 2 and dropout, no flash, they add up to its
s b h (11 + 5 a s / h) for the attention half.
"""

from __future__ import annotations

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.context import core_backward, core_forward
from simulator.parallel.core import Core
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
from simulator.parallel.work import UNFUSED_ROPE_PASSES, Piece
from simulator.workload.job import LoraTarget, Part
from simulator.workload.layer import AttentionSpec, LayerSpec, QkNorm
from simulator.workload.operator import MemoryBound


def attention_forward(layer: LayerSpec, attention: AttentionSpec, shard: Shard) -> list[Piece]:
    """Return the forward pass: norm, qkv, rope, core attention, projection, residual."""
    core, hidden = attention_core(attention, shard.tp), layer.hidden_size
    qkv, proj = _linears(hidden, attention, shard)
    return [
        *norm_forward("attention.norm", hidden, shard),
        *open_branch_forward("attention.qkv", hidden, shard, LoraTarget.QKV),
        *linear_forward(qkv, shard),
        *_rope("attention.rope", attention, core, shard),
        *core_forward(core, shard),
        *linear_forward(proj, shard),
        *close_branch_forward("attention.proj", layer, shard),
    ]


def attention_backward(layer: LayerSpec, attention: AttentionSpec, shard: Shard) -> list[Piece]:
    """Return the backward pass, in the order in which autograd runs it."""
    core, hidden = attention_core(attention, shard.tp), layer.hidden_size
    qkv, proj = _linears(hidden, attention, shard)
    return [
        *close_branch_backward("attention.proj", layer, shard),
        *linear_backward(proj, shard),
        *core_backward(core, shard),
        *_rope("attention.rope.backward", attention, core, shard),
        *open_branch_backward("attention.qkv", hidden, shard, linear_backward(qkv, shard)),
        *norm_backward("attention.norm", hidden, shard),
    ]


def attention_core(attention: AttentionSpec, tp: int) -> Core:
    """Return the heads that one of `tp` ranks holds; there is at least one key-value head."""
    return Core(
        heads=attention.num_attention_heads // tp,
        kv_heads=max(1, attention.num_key_value_heads // tp),
        head_dim=attention.head_dim,
        v_head_dim=attention.head_dim,
        window=attention.window,
        chunk=attention.chunk,
    )


def _linears(hidden: int, attention: AttentionSpec, shard: Shard) -> tuple[Linear, Linear]:
    """Return the projection to queries, keys and values, and the output projection."""
    core = attention_core(attention, shard.tp)
    qkv = Linear(
        name="attention.qkv",
        tokens=shard.tokens,
        n=core.query_width + core.key_width + core.value_width,
        k=hidden,
        part=Part.ATTENTION,
        kept_tokens=shard.kept_tokens,
        bias=attention.qkv_bias,
        target=LoraTarget.QKV,
    )
    proj = Linear(
        name="attention.proj",
        tokens=shard.tokens,
        n=hidden,
        k=core.output_width,
        part=Part.ATTENTION,
        bias=attention.output_bias,
        target=LoraTarget.PROJ,
    )
    return qkv, proj


def _rope(name: str, attention: AttentionSpec, core: Core, shard: Shard) -> list[Piece]:
    """Rotary embedding and per-head norms read and write queries and keys."""
    width = core.query_width + core.key_width
    passes = 2 * attention.rope * (1 if shard.kernels.fused_rope else UNFUSED_ROPE_PASSES)
    passes += 2 * (attention.qk_norm is not QkNorm.NONE)
    if not passes:
        return []
    moved = passes * shard.element * shard.tokens * width
    return [MemoryBound(name=name, bytes=moved, kind=MemoryClass.POINTWISE, launches=passes)]
