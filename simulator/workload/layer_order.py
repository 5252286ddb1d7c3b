"""Expands a model description into its layers, equal ones shared."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from simulator.workload.layer import (
    AttentionBlock,
    AttentionSpec,
    LayerSpec,
    LinearSpec,
    MlaSpec,
    MlpBlock,
    MlpSpec,
    MoeSpec,
    QkNorm,
)
from simulator.workload.model_parts import BlockKind, Experts, LayerOverride, LayerType, Position

if TYPE_CHECKING:
    from simulator.workload.model import ModelSpec


@lru_cache(maxsize=256)
def layer_order(spec: ModelSpec) -> tuple[tuple[LayerSpec, ...], tuple[int, ...]]:
    """Return the distinct layers, and for each layer the index of its kind among them."""
    overrides = {index: override for override in spec.layer_overrides for index in override.layers}
    indices: dict[LayerSpec, int] = {}
    order = [
        indices.setdefault(_layer(spec, number, overrides.get(number)), len(indices))
        for number in range(spec.num_hidden_layers)
    ]
    return tuple(indices), tuple(order)


def mtp_layer(spec: ModelSpec) -> LayerSpec:
    """Return the layer of a module of multi-token prediction: one like the model's last.

    Source: Megatron-LM core/models/gpt/gpt_layer_specs.py, get_gpt_mtp_block_spec, which takes the
    last layer's kind.
    """
    distinct, order = layer_order(spec)
    return distinct[order[-1]]


def _layer(spec: ModelSpec, number: int, override: LayerOverride | None) -> LayerSpec:
    attention = _attention(spec, number, override)
    mlp = _mlp(spec, number, override)
    absent = (attention is None) + (mlp is None)
    return LayerSpec(
        hidden_size=spec.hidden_size,
        attention=attention,
        mlp=mlp,
        norm=spec.norm,
        norm_bias=spec.norm_bias,
        norms=spec.norms_per_layer - absent * spec.norms_per_layer // 2,
        parallel=spec.parallel_block,
    )


def _attention(
    spec: ModelSpec, number: int, override: LayerOverride | None
) -> AttentionBlock | None:
    kind = override.attention if override else BlockKind.NORMAL
    if kind is BlockKind.NONE:
        return None
    if kind is BlockKind.LINEAR:
        return LinearSpec(hidden_size=spec.hidden_size, bias=spec.attention_bias)
    if spec.mla is not None:
        return MlaSpec(
            hidden_size=spec.hidden_size,
            num_attention_heads=spec.num_attention_heads,
            **spec.mla.model_dump(),
            bias=spec.attention_bias,
            output_bias=spec.attention_output_bias,
        )
    return _grouped_attention(spec, number, override)


def _grouped_attention(
    spec: ModelSpec, number: int, override: LayerOverride | None
) -> AttentionSpec:
    rope = spec.position is Position.ROPE and number not in spec.no_rope_layers
    bare = spec.qk_norm is QkNorm.NONPARAMETRIC and not rope
    own_heads = override.num_attention_heads if override else None
    own_groups = override.num_key_value_heads if override else None
    return AttentionSpec(
        hidden_size=spec.hidden_size,
        num_attention_heads=own_heads or spec.num_attention_heads,
        num_key_value_heads=own_groups or spec.num_key_value_heads,
        head_dim=spec.head_dim,
        qkv_bias=spec.attention_bias,
        output_bias=spec.attention_output_bias,
        qk_norm=QkNorm.NONE if bare else spec.qk_norm,
        window=_window(spec, number),
        chunk=_chunk(spec, number),
        sinks=spec.attention_sinks,
        rope=rope,
    )


def _mlp(spec: ModelSpec, number: int, override: LayerOverride | None) -> MlpBlock | None:
    kind = override.mlp if override else BlockKind.NORMAL
    if kind is BlockKind.NONE:
        return None
    if kind is BlockKind.LINEAR:
        return LinearSpec(hidden_size=spec.hidden_size, bias=spec.mlp_bias)
    if spec.moe is not None and number not in spec.moe.dense_layers:
        return _experts(spec, spec.moe)
    own_size = override.intermediate_size if override else None
    return MlpSpec(
        hidden_size=spec.hidden_size,
        intermediate_size=own_size or spec.intermediate_size,
        gated=spec.gated_mlp,
        activation=spec.activation,
        bias=spec.mlp_bias,
    )


def _experts(spec: ModelSpec, moe: Experts) -> MoeSpec:
    return MoeSpec(
        hidden_size=spec.hidden_size,
        experts=moe.num_experts,
        experts_per_token=moe.num_experts_per_tok,
        intermediate_size=moe.moe_intermediate_size,
        gated=spec.gated_mlp,
        activation=spec.activation,
        bias=moe.expert_bias,
        clamped=moe.clamped,
        shared_intermediate_size=moe.shared_expert_intermediate_size,
        shared_gate=moe.shared_expert_gate,
        router_bias=moe.router_bias,
        groups=moe.n_group,
        groups_per_token=moe.topk_group,
    )


def _window(spec: ModelSpec, number: int) -> int | None:
    """Return the sliding window of a layer, or None where its attention is full."""
    if spec.layer_types is not None:
        slides = spec.layer_types[number] is LayerType.SLIDING
    elif spec.sliding_window_pattern is not None:
        slides = (number + 1) % spec.sliding_window_pattern != 0
    else:
        slides = True
    return spec.sliding_window if slides else None


def _chunk(spec: ModelSpec, number: int) -> int | None:
    """Return the chunk length of a layer's attention, or None where it is not chunked."""
    if spec.layer_types is None or spec.layer_types[number] is not LayerType.CHUNKED:
        return None
    return spec.attention_chunk_size
