"""Multi-head latent attention as one rank runs it: down, norm, up, rotary part, core, projection.

Shapes: n own tokens (t / tp with sequence parallelism), t tokens of the tp group, a = heads / tp.
Every tp rank holds the whole down projections and applies them to its own tokens; the up
projections are column parallel, so that sequence parallelism gathers latents and not hidden
states. Training runs the expanded form: keys and values of every head.

The gradients of the weights that tp ranks share are added up over tp once a step, which is
not priced: of DeepSeek-V3's layers they are 15 M parameters each.

Source: Megatron-LM core/transformer/multi_latent_attention.py (MLASelfAttention; down projections
are TELinear with parallel_mode "duplicated"); DeepSeek-AI 2024, DeepSeek-V2, section 2.1.
"""

from __future__ import annotations

from dataclasses import replace

from simulator.hardware.kernel_constants import MemoryClass
from simulator.parallel.context import core_backward, core_forward
from simulator.parallel.core import Core
from simulator.parallel.groups import Collective
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
from simulator.parallel.work import ADD_PASSES, UNFUSED_ROPE_PASSES, CommWork, Piece
from simulator.workload.job import LoraTarget, Part
from simulator.workload.layer import LayerSpec, MlaSpec
from simulator.workload.operator import MemoryBound


def mla_forward(layer: LayerSpec, mla: MlaSpec, shard: Shard) -> list[Piece]:
    """Return the forward pass; each product keeps its input, the core queries, keys, values."""
    pieces = norm_forward("attention.norm", layer.hidden_size, shard)
    if mla.q_lora_rank is not None:
        pieces += linear_forward(_down("q_down", mla.q_lora_rank, mla, shard), shard)
    pieces += _without_input(linear_forward(_down("kv_down", _kv_width(mla), mla, shard), shard))
    if mla.q_lora_rank is not None:
        pieces += norm_forward("attention.q_norm", mla.q_lora_rank, shard)
    pieces += norm_forward("attention.kv_norm", mla.kv_lora_rank, shard)
    for up in (_query_up(mla, shard), _kv_up(mla, shard)):
        pieces += [*open_branch_forward(up.name, up.k, shard), *linear_forward(up, shard)]
    projection = _projection(mla, shard)
    return [
        *pieces,
        *_rotary_key(mla, shard, backward=False),
        _rope("attention.rope", mla, shard),
        *core_forward(mla_core(mla, shard.tp), shard),
        *linear_forward(projection, shard),
        *close_branch_forward(projection.name, layer, shard),
    ]


def mla_backward(layer: LayerSpec, mla: MlaSpec, shard: Shard) -> list[Piece]:
    """Return the backward pass, in the order in which autograd runs it."""
    projection, hidden = _projection(mla, shard), layer.hidden_size
    pieces = [
        *close_branch_backward(projection.name, layer, shard),
        *linear_backward(projection, shard),
        *core_backward(mla_core(mla, shard.tp), shard),
        _rope("attention.rope.backward", mla, shard),
        *_rotary_key(mla, shard, backward=True),
    ]
    for up in (_kv_up(mla, shard), _query_up(mla, shard)):
        pieces += open_branch_backward(up.name, up.k, shard, linear_backward(up, shard))
    pieces += norm_backward("attention.kv_norm", mla.kv_lora_rank, shard)[:1]
    pieces += linear_backward(_down("kv_down", _kv_width(mla), mla, shard), shard)
    if mla.q_lora_rank is not None:
        pieces += norm_backward("attention.q_norm", mla.q_lora_rank, shard)[:1]
        pieces += linear_backward(_down("q_down", mla.q_lora_rank, mla, shard), shard)
    return [*pieces, _add_gradients(mla, shard), *norm_backward("attention.norm", hidden, shard)]


def mla_core(mla: MlaSpec, tp: int) -> Core:
    """Return the heads of one of `tp` ranks: each has a key and a value of its own."""
    heads = mla.num_attention_heads // tp
    return Core(heads=heads, kv_heads=heads, head_dim=mla.qk_head_dim, v_head_dim=mla.v_head_dim)


def _kv_width(mla: MlaSpec) -> int:
    """Channels of the latent of keys and values, and of the rotary key that all heads share."""
    return mla.kv_lora_rank + mla.qk_rope_head_dim


def _down(name: str, width: int, mla: MlaSpec, shard: Shard) -> Linear:
    """Return a down projection: whole on every tp rank, applied to the rank's own tokens."""
    return Linear(
        name=f"attention.{name}",
        tokens=round(shard.residual_tokens),
        n=width,
        k=mla.hidden_size,
        part=Part.ATTENTION,
        bias=mla.bias,
    )


def _query_up(mla: MlaSpec, shard: Shard) -> Linear:
    """Return the projection to queries, from their latent or from the hidden state."""
    k = mla.q_lora_rank or mla.hidden_size
    return _up("attention.q_up", mla.query_width // shard.tp, k, shard)


def _kv_up(mla: MlaSpec, shard: Shard) -> Linear:
    return _up("attention.kv_up", mla.up_width // shard.tp, mla.kv_lora_rank, shard)


def _up(name: str, n: int, k: int, shard: Shard) -> Linear:
    return Linear(
        name=name,
        tokens=shard.tokens,
        n=n,
        k=k,
        part=Part.ATTENTION,
        kept_tokens=shard.kept_tokens,
    )


def _projection(mla: MlaSpec, shard: Shard) -> Linear:
    return Linear(
        name="attention.proj",
        tokens=shard.tokens,
        n=mla.hidden_size,
        k=mla.value_width // shard.tp,
        part=Part.ATTENTION,
        target=LoraTarget.PROJ,
    )


def _without_input(pieces: list[Piece]) -> list[Piece]:
    """The down projection of queries (or queries' only one) keeps the same input already."""
    return [piece if isinstance(piece, CommWork) else replace(piece, saved=0.0) for piece in pieces]


def _rotary_key(mla: MlaSpec, shard: Shard, *, backward: bool) -> list[Piece]:
    """The one rotary key of a token reaches all tp ranks, and its gradient comes from them."""
    if shard.tp == 1 or (not backward and not shard.sequence_parallel):
        return []
    width = mla.qk_rope_head_dim
    if not backward:
        return [shard.tensor_comm("attention.rope.gather", Collective.ALL_GATHER, width, ())]
    reduce = Collective.REDUCE_SCATTER if shard.sequence_parallel else Collective.ALL_REDUCE
    return [shard.tensor_comm("attention.rope.grad_input", reduce, width, ())]


def _rope(name: str, mla: MlaSpec, shard: Shard) -> MemoryBound:
    """Return the rotation, which also lays out keys and values; backward moves as much.

    For each head it reads and writes the rotary part of the query, reads what `kv_up` wrote and
    writes a key and a value; it reads the shared rotary key of the token.
    """
    heads, rotary = mla.num_attention_heads // shard.tp, mla.qk_rope_head_dim
    latent_parts = mla.qk_nope_head_dim + mla.v_head_dim
    channels = heads * (2 * rotary + latent_parts + mla.qk_head_dim + mla.v_head_dim) + rotary
    passes = 1 if shard.kernels.fused_rope else UNFUSED_ROPE_PASSES
    return MemoryBound(
        name=name,
        bytes=passes * shard.element * shard.tokens * channels,
        kind=MemoryClass.POINTWISE,
        launches=2 * passes,
    )


def _add_gradients(mla: MlaSpec, shard: Shard) -> MemoryBound:
    """Return the sum of the two gradients of the norm's output."""
    moved = ADD_PASSES * shard.element * shard.residual_tokens * mla.hidden_size
    return MemoryBound(
        name="attention.kv_down.add.backward", bytes=moved, kind=MemoryClass.POINTWISE
    )
