"""What the fields of a model must agree on; each check raises `ValueError` with rule and fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.workload.layer import QkNorm
from simulator.workload.model_parts import (
    MAX_HEADS,
    MAX_LAYERS,
    BlockKind,
    Experts,
    LatentAttention,
    LayerOverride,
    LayerType,
    Position,
)


def check_groups(key_value_heads: int, heads: int | None) -> None:
    """Raise unless key/value heads divide the query heads."""
    if heads is not None and heads % key_value_heads:
        legal = [n for n in range(1, min(heads, MAX_HEADS) + 1) if heads % n == 0]
        shown = ", ".join(str(n) for n in legal)
        raise ValueError(f"must divide num_attention_heads {heads}; use one of {shown}")


def check_layers_exist(indices: Sequence[int], data: Mapping[str, Any]) -> None:
    """Raise unless every index is one of a layer."""
    layers = data.get("num_hidden_layers", MAX_LAYERS)
    if any(index >= layers for index in indices):
        raise ValueError(f"must be below num_hidden_layers {layers}; use 0 to {layers - 1}")


def check_layer_types(types: Sequence[LayerType], data: Mapping[str, Any]) -> None:
    """Raise unless there is one type a layer, and the length that each kind needs."""
    layers = data.get("num_hidden_layers")
    if layers is not None and len(types) != layers:
        raise ValueError(
            f"must have one entry a layer: {layers} entries, not {len(types)}; "
            f"use num_hidden_layers {len(types)} or the missing entries"
        )
    if LayerType.SLIDING in types and data.get("sliding_window", 1) is None:
        raise ValueError('"sliding_attention" needs a sliding_window; use a number of tokens')
    if LayerType.CHUNKED in types and data.get("attention_chunk_size", 1) is None:
        raise ValueError('"chunked_attention" needs attention_chunk_size; use a number of tokens')


def check_chunks_are_used(types: Sequence[LayerType] | None, data: Mapping[str, Any]) -> None:
    """Raise where a chunk size is given and no layer is chunked."""
    if data.get("attention_chunk_size") is None or (types and LayerType.CHUNKED in types):
        return
    raise ValueError(
        "attention_chunk_size is given, but no layer is chunked; "
        'use "chunked_attention" for some layer, or no attention_chunk_size'
    )


def check_experts(moe: Experts, data: Mapping[str, Any]) -> None:
    """Raise unless the dense layers are layers, and some layer is left with experts."""
    layers = data.get("num_hidden_layers")
    if layers is None:
        return
    for index in moe.dense_layers:
        if index >= layers:
            raise ValueError(
                f"dense_layers {index} must be below num_hidden_layers {layers}; "
                f"use 0 to {layers - 1}"
            )
    if len(moe.dense_layers) == layers:
        raise ValueError(
            f"dense_layers leaves none of {layers} layers with experts; "
            f"use at most {layers - 1} dense layers, or no moe"
        )


def check_latent_attention(mla: LatentAttention, data: Mapping[str, Any]) -> None:
    """Raise unless the rest of the model says nothing that latent attention does not have."""
    heads, width = data.get("num_attention_heads"), mla.qk_nope_head_dim + mla.qk_rope_head_dim
    wanted: dict[str, Any] = {
        "num_key_value_heads": heads,
        "head_dim": width,
        "qk_norm": QkNorm.NONE,
        "attention_sinks": False,
        "position": Position.ROPE,
        "no_rope_layers": (),
        "sliding_window": None,
        "sliding_window_pattern": None,
        "attention_chunk_size": None,
    }
    for key, value in wanted.items():
        found = data.get(key, value)
        if found != value and heads is not None:
            raise ValueError(
                f"latent attention has {_shown(key, value)}, not {_shown(key, found)}; "
                f"use {_shown(key, value)}"
            )
    types = data.get("layer_types") or ()
    if any(kind is not LayerType.FULL for kind in types):
        raise ValueError('latent attention is full in every layer; use "full_attention"')


def check_overrides(overrides: Sequence[LayerOverride], data: Mapping[str, Any]) -> None:
    """Raise unless each override is of layers that are there, once, and is read in all of them."""
    layers = data.get("num_hidden_layers", MAX_LAYERS)
    count = Counter(index for override in overrides for index in override.layers)
    for index, times in count.items():
        if index >= layers or times > 1:
            raise ValueError(
                f"layer {index} must be below num_hidden_layers {layers} and overridden once; "
                f"use each of 0 to {layers - 1} at most once"
            )
    for override in overrides:
        heads = override.num_attention_heads or data.get("num_attention_heads")
        groups = override.num_key_value_heads or data.get("num_key_value_heads")
        if groups is not None:
            check_groups(groups, heads)
        _check_override_is_read(override, data.get("moe"), data.get("mla"))


def _check_override_is_read(
    override: LayerOverride, moe: Experts | None, mla: LatentAttention | None
) -> None:
    own_heads = override.num_attention_heads or override.num_key_value_heads
    if mla is not None and own_heads is not None:
        raise ValueError(
            "latent attention has the same heads in every layer; "
            "use the model's num_attention_heads"
        )
    if moe is None or override.intermediate_size is None or override.mlp is not BlockKind.NORMAL:
        return
    sparse = [index for index in override.layers if index not in moe.dense_layers]
    if sparse:
        raise ValueError(
            f"intermediate_size of layer {sparse[0]} is that of a dense MLP, but it has experts; "
            f"use moe.dense_layers with {sparse[0]}, or no intermediate_size"
        )


def _shown(key: str, value: object) -> str:
    if value is None or value == ():
        return f"no {key}"
    return f"{key} {list(value) if isinstance(value, tuple) else str(value).lower()}"
