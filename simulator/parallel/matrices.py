"""The weight matrices of a layer as one rank holds them: what optimizers and adapters see."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from simulator.parallel.adapter import adapter_parameters
from simulator.parallel.weights import Linear
from simulator.workload.job import Lora, LoraTarget, Part
from simulator.workload.layer import (
    AttentionBlock,
    AttentionSpec,
    LayerSpec,
    LinearSpec,
    MlaSpec,
    MlpBlock,
    MlpSpec,
    MoeSpec,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """What divides weights: tensor, expert and expert-tensor parallelism."""

    tp: int
    ep: int = 1
    expert_tp: int = 1


@lru_cache(maxsize=4096)
def layer_matrices(layer: LayerSpec, ranks: Ranks) -> tuple[Linear, ...]:
    """Return the weights of linear layers on one rank, with no tokens.

    >>> mlp = MlpSpec(hidden_size=8, intermediate_size=32, gated=True, activation="silu")
    >>> from simulator.workload.layer import Norm
    >>> layer = LayerSpec(hidden_size=8, attention=None, mlp=mlp, norm=Norm.RMSNORM, norms=1)
    >>> [(matrix.k, matrix.n) for matrix in layer_matrices(layer, Ranks(tp=2))]
    [(8, 32), (16, 8)]
    """
    return (
        *_attention(layer.attention, layer.hidden_size, ranks),
        *_mlp(layer.mlp, layer.hidden_size, ranks),
    )


def layer_adapters(layer: LayerSpec, ranks: Ranks, lora: Lora | None) -> float:
    """Return the parameters of a layer's adapters on one rank."""
    if lora is None:
        return 0.0
    return sum(
        adapter_parameters(matrix, lora.rank, ranks.tp)
        for matrix in layer_matrices(layer, ranks)
        if matrix.target in lora.targets and matrix.part is not Part.EXPERTS
    )


@lru_cache(maxsize=8192)
def narrow_weights(layer: LayerSpec, ranks: Ranks, *, routed: bool = False) -> float:
    """Return the weights on one rank that may run in 8 or 4 bits, of routed experts or of the rest.

    >>> from simulator.workload.layer import Norm
    >>> mlp = MlpSpec(hidden_size=8, intermediate_size=32, gated=False, activation="gelu")
    >>> layer = LayerSpec(hidden_size=8, attention=None, mlp=mlp, norm=Norm.RMSNORM, norms=1)
    >>> narrow_weights(layer, Ranks(tp=2))
    256.0
    """
    matrices = layer_matrices(layer, ranks)
    return float(
        sum(m.parameters for m in matrices if m.narrow and (m.part is Part.EXPERTS) is routed)
    )


def _attention(block: AttentionBlock | None, hidden: int, ranks: Ranks) -> tuple[Linear, ...]:
    tp = ranks.tp
    match block:
        case AttentionSpec():
            kv = max(1, block.num_key_value_heads // tp) * block.head_dim
            query = block.query_width // tp
            return (
                _matrix("attention.qkv", hidden, query + 2 * kv, LoraTarget.QKV),
                _matrix("attention.proj", query, hidden, LoraTarget.PROJ),
            )
        case MlaSpec():
            return _latent(block, hidden, tp)
        case LinearSpec():
            return (_matrix("attention.linear", hidden, hidden // tp),)
        case None:
            return ()
        case _:
            assert_never(block)


def _latent(block: MlaSpec, hidden: int, tp: int) -> tuple[Linear, ...]:
    latent = block.q_lora_rank
    down = [] if latent is None else [_matrix("attention.q_down", hidden, latent)]
    shared = block.kv_lora_rank + block.qk_rope_head_dim
    return (
        *down,
        _matrix("attention.kv_down", hidden, shared),
        _matrix("attention.q_up", latent or hidden, block.query_width // tp),
        _matrix("attention.kv_up", block.kv_lora_rank, block.up_width // tp),
        _matrix("attention.proj", block.value_width // tp, hidden, LoraTarget.PROJ),
    )


def _mlp(block: MlpBlock | None, hidden: int, ranks: Ranks) -> tuple[Linear, ...]:
    match block:
        case MlpSpec():
            return _pair("mlp", hidden, block.intermediate_size // ranks.tp, gated=block.gated)
        case MoeSpec():
            return _experts(block, hidden, ranks)
        case LinearSpec():
            return (_matrix("mlp.linear", hidden, hidden // ranks.tp, part=Part.MLP),)
        case None:
            return ()
        case _:
            assert_never(block)


def _experts(block: MoeSpec, hidden: int, ranks: Ranks) -> tuple[Linear, ...]:
    width, count = block.intermediate_size // ranks.expert_tp, block.experts // ranks.ep
    routed = _pair("moe.experts", hidden, width, gated=block.gated, part=Part.EXPERTS, batch=count)
    shared: tuple[Linear, ...] = ()
    if block.shared_intermediate_size:
        width = block.shared_intermediate_size // ranks.tp
        shared = _pair("moe.shared", hidden, width, gated=block.gated)
    router = Linear(
        name="moe.router", tokens=0, k=hidden, n=block.experts, part=Part.MLP, narrow=False
    )
    return (router, *routed, *shared)


def _pair(
    name: str, hidden: int, width: int, *, gated: bool, part: Part = Part.MLP, batch: int = 1
) -> tuple[Linear, Linear]:
    up = (2 if gated else 1) * width
    return (
        _matrix(f"{name}.up", hidden, up, LoraTarget.FC1, part=part, batch=batch),
        _matrix(f"{name}.down", width, hidden, LoraTarget.FC2, part=part, batch=batch),
    )


def _matrix(
    name: str,
    k: int,
    n: int,
    target: LoraTarget | None = None,
    *,
    part: Part = Part.ATTENTION,
    batch: int = 1,
) -> Linear:
    return Linear(name=name, tokens=0, k=k, n=n, part=part, target=target, batch=batch)
