"""What a layer does not keep for its backward pass, and computes again instead.

Everything is read off the forward pass: a module is the pieces of it that run again, and the bytes
that these no longer keep. What they bring back is alive only while the layer's backward pass runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from simulator.parallel.expert_kernels import CLAMP
from simulator.parallel.operator_recompute import by_operator
from simulator.parallel.shard import Shard
from simulator.parallel.work import FP32_BYTES, Block, CommWork, PassPair, Piece, Recomputation
from simulator.workload.layer import LayerSpec, MlaSpec
from simulator.workload.operator import FlashAttention, Gemm, MemoryBound
from simulator.workload.stack_choices import Recompute, RecomputeModule

_PROJECTION = "attention.proj"
_DOWN = "mlp.down"
_BEFORE_CORE = tuple(f"attention.{part}" for part in ("norm", "qkv", "rope", "q_", "kv_"))
"""Beginnings of the names of what stands in front of the attention core."""
_UP_PROJECTIONS = ("attention.q_up", "attention.kv_up", "attention.rope")
_NORMS = ("attention.norm", "mlp.norm", "moe.norm", "attention.linear.norm", "mlp.linear.norm")
_NORM_READERS = (
    "attention.qkv",
    "attention.q_down",
    "attention.kv_down",
    "attention.linear",
    "mlp.up",
    "mlp.linear",
    "moe.router",
)
"""Linear layers that keep the output of a norm as their input, in front of their adapters."""
_OUTSIDE = (".norm", ".post_norm", ".residual")
"""Ends of the names of what belongs to a branch but not to the module in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rerun:
    """What one module computes again."""

    names: frozenset[str]
    freed: Mapping[str, float]
    """Name of a piece -> bytes of what it keeps that are not kept."""
    held: float = 0.0
    """Bytes that are kept instead: the module's input where nothing else keeps it."""


def recomputation(
    layer: LayerSpec, shard: Shard, recompute: Recompute, forward: Block
) -> Recomputation:
    """Return what `recompute` makes of a layer whose forward pass is `forward`.

    Full recomputation keeps the input, of `shard.residual_tokens` x hidden elements, which is also
    part of what the forward pass brings back.
    """
    match recompute:
        case Recompute.NONE:
            return Recomputation(again=(), freed=0.0, transient=0.0)
        case Recompute.FULL:
            freed = forward.saved - layer_input(layer, shard)
            return Recomputation(again=forward.pieces, freed=freed, transient=max(0.0, freed))
        case Recompute.SELECTIVE:
            modules = shard.recompute_modules
            if not modules:
                core = tuple(core_pieces(forward.pieces))
                return by_operator(layer, shard, forward.pieces, core)
            reruns = [_rerun(module, layer, shard, forward.pieces) for module in modules]
            return _together(reruns, forward.pieces)
        case _:
            assert_never(recompute)


def layer_input(layer: LayerSpec, shard: Shard) -> float:
    """Return the bytes of the input of a layer, and of a norm's output, on one rank."""
    return shard.element * shard.residual_tokens * layer.hidden_size


def in_unit(passes: PassPair, size: int, *, holds_input: bool) -> PassPair:
    """Return the passes of a fully recomputed layer in a unit of `size` layers like it.

    Only the first layer of the unit keeps its input; all of them are computed again before the
    backward pass of the last, so that what `size` layers keep is alive at once.

    Source: Megatron-LM core/transformer/transformer_block.py, `recompute_method == "uniform"`.
    """
    kept = passes.kept if holds_input else 0.0
    more = (size - 1) * passes.forward.saved
    return replace(passes, kept=kept, transient=passes.transient + more)


def _together(reruns: Sequence[_Rerun], pieces: Sequence[Piece]) -> Recomputation:
    """Return what several modules of a layer recompute; what two of them free is freed once.

    The backward pass of the MLP has ended when that of attention begins, so that the transients of
    the two branches do not meet.
    """
    names = frozenset[str]().union(*(rerun.names for rerun in reruns))
    freed: dict[str, float] = {}
    for rerun in reruns:
        for name, size in rerun.freed.items():
            freed[name] = max(size, freed.get(name, 0.0))
    held = sum(rerun.held for rerun in reruns)
    attention = sum(size for name, size in freed.items() if name.startswith("attention."))
    total = sum(freed.values())
    return Recomputation(
        again=tuple(_run_again(piece, freed) for piece in pieces if piece.name in names),
        freed=total - held,
        transient=max(attention, total - attention - held),
    )


def _run_again(piece: Piece, freed: Mapping[str, float]) -> Piece:
    if isinstance(piece, CommWork):
        return piece
    return replace(piece, saved=freed.get(piece.name, 0.0))


def _rerun(
    module: RecomputeModule, layer: LayerSpec, shard: Shard, pieces: Sequence[Piece]
) -> _Rerun:
    match module:
        case RecomputeModule.CORE_ATTENTION:
            return _core(pieces)
        case RecomputeModule.LAYERNORM:
            return _norms(layer, shard, pieces)
        case RecomputeModule.MLA_UP_PROJECTION:
            return _up_projections(layer, shard, pieces)
        case RecomputeModule.MOE_ACTIVATION:
            return _activation(pieces)
        case RecomputeModule.SHARED_EXPERTS:
            return _module(pieces, "moe.shared.", 0.0)
        case RecomputeModule.MLP:
            whole = _module(pieces, "mlp.", _module_input(layer, shard))
            return _without_result(whole) if shard.kernels.prunes_recompute else whole
        case RecomputeModule.MOE:
            return _module(pieces, "moe.", _module_input(layer, shard))
        case _:
            assert_never(module)


def _core(pieces: Sequence[Piece]) -> _Rerun:
    """The products' own inputs (queries, keys, values) stay, so only scores and masks are freed."""
    core = list(core_pieces(pieces))
    freed = {piece.name: piece.saved for piece in core if isinstance(piece, MemoryBound)}
    return _Rerun(names=_names(core), freed=freed)


def core_pieces(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield what stands between the projections into softmax attention and the one out of it."""
    names = [piece.name for piece in pieces]
    if _PROJECTION not in names:
        return
    # A cast in front of the projection is called after it.
    stop = next(i for i, name in enumerate(names) if name.startswith(_PROJECTION))
    for piece in pieces[:stop]:
        if piece.name.startswith("attention.") and not piece.name.startswith(_BEFORE_CORE):
            yield piece


def _norms(layer: LayerSpec, shard: Shard, pieces: Sequence[Piece]) -> _Rerun:
    """Norm outputs, which are the inputs of the linear layers behind; gathered again where kept so.

    Source: Megatron-LM core/transformer/transformer_layer.py (`recompute_input_layernorm`,
    `recompute_pre_mlp_layernorm`).
    """
    readers = set(_NORM_READERS)
    if isinstance(layer.attention, MlaSpec) and layer.attention.q_lora_rank is None:
        readers.add("attention.q_up")
    again = [piece for piece in pieces if piece.name in _NORMS]
    if shard.kernels.keeps_gathered:
        again += [piece for piece in pieces if piece.name in {f"{name}.gather" for name in readers}]
    readers |= {f"{name}.lora.a" for name in readers}
    freed = {piece.name: _saved(piece) for piece in pieces if piece.name in readers}
    return _Rerun(names=_names(again), freed=freed)


def _up_projections(layer: LayerSpec, shard: Shard, pieces: Sequence[Piece]) -> _Rerun:
    """Queries, keys and values of latent attention; their latents, the inputs, stay.

    They are all that the core keeps, but for the log-sum-exp of fused attention, one fp32 number a
    query and head.

    Source: Megatron-LM core/transformer/multi_latent_attention.py (`recompute_up_proj`).
    """
    if not isinstance(layer.attention, MlaSpec):
        return _Rerun(names=frozenset(), freed={})
    heads = layer.attention.num_attention_heads // shard.tp
    log_sum_exp = FP32_BYTES * shard.tokens * heads
    freed = {
        piece.name: piece.saved - log_sum_exp * isinstance(piece, FlashAttention)
        for piece in core_pieces(pieces)
        if isinstance(piece, Gemm | FlashAttention) and piece.saved
    }
    again = [piece for piece in pieces if piece.name.startswith(_UP_PROJECTIONS)]
    return _Rerun(names=_names(again), freed=freed)


def _activation(pieces: Sequence[Piece]) -> _Rerun:
    """The experts' activation again; its output, the input of their down projection, is freed.

    Source: Megatron-LM core/transformer/moe/experts.py (`activation_recompute`).
    """
    again = [piece for piece in pieces if piece.name.startswith("moe.experts.activation")]
    freed = {p.name: _saved(p) for p in pieces if p.name in ("moe.experts.down", CLAMP)}
    return _Rerun(names=_names(again), freed=freed)


def _module(pieces: Sequence[Piece], beginning: str, held: float) -> _Rerun:
    """All of a branch but its norm and its residual; it keeps its own input."""
    again = [
        piece
        for piece in pieces
        if piece.name.startswith(beginning) and not piece.name.endswith(_OUTSIDE)
    ]
    freed = {piece.name: _saved(piece) for piece in again if _saved(piece)}
    return _Rerun(names=_names(again), freed=freed, held=held if again else 0.0)


def _without_result(whole: _Rerun) -> _Rerun:
    """Return an MLP's rerun less its down projection and what is sent behind it.

    The backward pass reads the projection's input, not its result, so that a compiler drops both
    as dead code. Source: JAX documentation of `jax.checkpoint`; XLA, HloDCE.
    """
    dead = {name for name in whole.names if name == _DOWN or name.startswith(f"{_DOWN}.")}
    casts = {name for name in dead if name.endswith(".cast")}
    return replace(whole, names=whole.names - (dead - casts))


def _module_input(layer: LayerSpec, shard: Shard) -> float:
    """Return what a checkpointed branch keeps: a norm's output, where that is not run again too."""
    if RecomputeModule.LAYERNORM in shard.recompute_modules:
        return 0.0
    return layer_input(layer, shard)


def _saved(piece: Piece) -> float:
    return 0.0 if isinstance(piece, CommWork) else piece.saved


def _names(pieces: Iterable[Piece]) -> frozenset[str]:
    return frozenset(piece.name for piece in pieces)
