"""Mixtures of experts with an attention or a placement of their own: GPT-OSS, Llama 4, ..."""

from __future__ import annotations

from simulator.errors import Problem, UnsupportedError
from simulator.workload.architectures.entry import (
    LLAMA_BLOCK,
    TIED,
    UNTIED,
    Architecture,
    Config,
    Fields,
    biases,
    require_length,
    windows,
)
from simulator.workload.architectures.experts import (
    EXPERTS,
    OWN_WIDTH,
    ROUTER,
    mixture,
    uniform,
)
from simulator.workload.layer import QkNorm
from simulator.workload.model_parts import LayerType

_SILU = {"hidden_act": "silu"}
FULL_ATTENTION = 1
"""Of `attn_type_list`."""
LAST = -1
"""Of `moe_layer_end_index`: up to the last layer."""


def _gpt_oss(config: Config) -> Fields:
    """Return sliding layers first and every second, biases everywhere, sinks, clamped experts.

    Source: transformers 4.57, modeling_gpt_oss.py.
    """
    types = config.get("layer_types")
    if types is None:
        kinds = (LayerType.SLIDING.value, LayerType.FULL.value)
        types = [kinds[index % 2] for index in range(config["num_hidden_layers"])]
    experts = mixture(
        config,
        moe_intermediate_size=config["intermediate_size"],
        router_bias=True,
        expert_bias=True,
        clamped=True,
    )
    return {**biases(config), **windows({**config, "layer_types": types}), **experts}


def _llama4(config: Config) -> Fields:
    """Return chunked layers with rotary embeddings, full ones without, and which have experts.

    Each expert, the shared one too, is as wide as intermediate_size; a dense MLP as
    intermediate_size_mlp. Source: transformers 4.57, configuration_llama4.py and
    modeling_llama4.py.
    """
    layers, interval = config["num_hidden_layers"], config["no_rope_layer_interval"]
    marks = config.get("no_rope_layers") or [
        int((index + 1) % interval != 0) for index in range(layers)
    ]
    require_length("no_rope_layers", len(marks), layers)
    kinds = (LayerType.FULL.value, LayerType.CHUNKED.value)
    types = config.get("layer_types") or [kinds[mark] for mark in marks]
    chunked = LayerType.CHUNKED in types
    return {
        **biases({"attention_bias": config.get("attention_bias", False)}),
        "no_rope_layers": [index for index, mark in enumerate(marks) if not mark],
        "layer_types": types,
        "attention_chunk_size": config["attention_chunk_size"] if chunked else None,
        "qk_norm": QkNorm.NONPARAMETRIC if config["use_qk_norm"] else QkNorm.NONE,
        **_llama4_experts(config),
        "intermediate_size": config["intermediate_size_mlp"],
    }


def _llama4_experts(config: Config) -> Fields:
    layers, step = config["num_hidden_layers"], config["interleave_moe_layer_step"]
    sparse = config.get("moe_layers")
    if sparse is None:
        sparse = range(step - 1, layers, step)
    width = config["intermediate_size"]
    return mixture(
        config,
        set(range(layers)) - set(sparse),
        moe_intermediate_size=width,
        shared_expert_intermediate_size=width,
    )


def _ernie_moe(config: Config) -> Fields:
    """Return one bias for all projections, and experts in a range of layers at an interval.

    Source: transformers 4.57, modeling_ernie4_5_moe.py.
    """
    bias, layers = config["use_bias"], config["num_hidden_layers"]
    first, last = config["moe_layer_start_index"], config["moe_layer_end_index"]
    last, step = layers - 1 if last == LAST else last, config["moe_layer_interval"]
    dense = [index for index in range(layers) if not first <= index <= last or (index + 1) % step]
    width = uniform(config, "moe_intermediate_size") or 0
    shared = width * (uniform(config, "n_shared_experts") or 0)
    return {
        "attention_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": bias,
        "lm_head_bias": bias,
        **mixture(
            config,
            dense,
            shared_expert_intermediate_size=shared,
            router_bias=True,
            expert_bias=bias,
        ),
    }


def _hunyuan_moe(config: Config) -> Fields:
    """Return experts in every layer beside one shared expert.

    Source: transformers 4.57, modeling_hunyuan_v1_moe.py; vLLM's hunyuan_v1.py for the width and
    the number of shared experts, which transformers takes as intermediate_size and 1.
    """
    width = config["intermediate_size"]
    shared = uniform(config, "n_shared_experts")
    experts = mixture(
        config,
        moe_intermediate_size=uniform(config, "moe_intermediate_size") or width,
        shared_expert_intermediate_size=width * (1 if shared is None else shared),
    )
    return {**biases(config), **experts}


def _minimax_m2(config: Config) -> Fields:
    """Return experts in every layer, routed with a correction, behind full attention.

    Source: MiniMax-M2 modeling_minimax_m2.py; a layer of another type is of linear attention.
    """
    kinds = set(config.get("attn_type_list") or (FULL_ATTENTION,))
    if kinds != {FULL_ATTENTION}:
        raise UnsupportedError(
            Problem(
                key="attn_type_list",
                found=str(sorted(kinds)),
                rule=f"linear attention is not modelled yet; {FULL_ATTENTION} is softmax attention",
                fix=f"use {FULL_ATTENTION} for every layer",
            )
        )
    return mixture(
        config,
        moe_intermediate_size=config["intermediate_size"],
        shared_expert_intermediate_size=config.get("shared_intermediate_size") or 0,
        router_bias=config["use_routing_bias"],
    )


GPT_OSS = Architecture(
    names=("gpt_oss",),
    fixed={**LLAMA_BLOCK, "attention_sinks": True},
    defaults={
        **UNTIED,
        **_SILU,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "max_position_embeddings": 131072,
        "sliding_window": 128,
        "attention_bias": True,
    },
    required=("num_experts", "num_experts_per_tok"),
    keys=EXPERTS | {"attention_bias", "sliding_window", "layer_types"},
    ignored=ROUTER | {"swiglu_limit", "initial_context_length"},
    derive=_gpt_oss,
)
LLAMA4 = Architecture(
    names=("llama4", "llama4_text"),
    fixed=LLAMA_BLOCK,
    defaults={
        **UNTIED,
        **_SILU,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 4096 * 32,
        "no_rope_layer_interval": 4,
        "interleave_moe_layer_step": 1,
        "attention_chunk_size": 8192,
        "use_qk_norm": True,
    },
    sizes={
        "vocab_size": 202048,
        "hidden_size": 5120,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "num_hidden_layers": 48,
        "num_attention_heads": 40,
        "num_experts": 16,
        "num_experts_per_tok": 1,
    },
    required=("num_experts", "num_experts_per_tok", "intermediate_size_mlp"),
    keys=EXPERTS
    | {
        "attention_bias",
        "attention_chunk_size",
        "interleave_moe_layer_step",
        "intermediate_size_mlp",
        "layer_types",
        "moe_layers",
        "no_rope_layer_interval",
        "no_rope_layers",
        "use_qk_norm",
    },
    ignored=ROUTER
    | {"attn_scale", "attn_temperature_tuning", "floor_scale", "for_llm_compression"},
    derive=_llama4,
)
ERNIE_MOE = Architecture(
    names=("ernie4_5_moe",),
    fixed=LLAMA_BLOCK,
    defaults={
        **TIED,
        **_SILU,
        "num_key_value_heads": 4,
        "max_position_embeddings": 131072,
        "use_bias": False,
        "moe_layer_start_index": 1,
        "moe_layer_end_index": LAST,
        "moe_layer_interval": 1,
    },
    required=(*sorted(OWN_WIDTH), "n_shared_experts"),
    keys=OWN_WIDTH
    | {
        "moe_layer_end_index",
        "moe_layer_interval",
        "moe_layer_start_index",
        "n_shared_experts",
        "use_bias",
    },
    stated={"compression_ratio": 1.0, "use_rmsnorm": True},
    ignored=ROUTER | {"moe_capacity", "moe_gate", "moe_use_aux_free"},
    left_out=frozenset({"num_nextn_predict_layers"}),
    derive=_ernie_moe,
)
HUNYUAN_MOE = Architecture(
    names=("hunyuan_v1_moe",),
    fixed={**LLAMA_BLOCK, "qk_norm": QkNorm.PER_HEAD},
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 2048},
    required=("num_experts", "num_experts_per_tok"),
    keys=OWN_WIDTH | {"attention_bias", "n_shared_experts"},
    stated={"use_qk_norm": True, "norm_type": "rms", "use_mixed_mlp_moe": True},
    ignored=ROUTER
    | {
        "attention_head_dim",
        "capacity_factor",
        "cla_share_factor",
        "dense_list",
        "group_limited_greedy",
        "moe_drop_tokens",
        "moe_random_routing_dropped_token",
        "org_vocab_size",
    },
    derive=_hunyuan_moe,
)
MINIMAX_M2 = Architecture(
    names=("minimax_m2",),
    fixed={**LLAMA_BLOCK, "qk_norm": QkNorm.FULL_WIDTH},
    defaults={
        **UNTIED,
        **_SILU,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 196608,
        "use_routing_bias": True,
    },
    required=("num_experts", "num_experts_per_tok"),
    keys=EXPERTS | {"attn_type_list", "shared_intermediate_size", "use_routing_bias"},
    stated={"use_qk_norm": True, "qk_norm_type": "per_layer", "mlp_intermediate_size": 8192},
    ignored=ROUTER | {"layernorm_full_attention_beta", "layernorm_mlp_beta"},
    left_out=frozenset({"mtp_transformer_layers", "num_mtp_modules", "use_mtp"}),
    derive=_minimax_m2,
)
ENTRIES = (GPT_OSS, LLAMA4, ERNIE_MOE, HUNYUAN_MOE, MINIMAX_M2)
