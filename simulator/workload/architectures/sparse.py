"""Mixtures of experts on a plain attention block: Mixtral, Phi, Granite, OLMo, Grok, DBRX."""

from __future__ import annotations

from simulator.workload.architectures.entry import (
    LLAMA_BLOCK,
    TIED,
    UNTIED,
    Architecture,
    Config,
    Fields,
    biases,
    windows,
)
from simulator.workload.architectures.experts import EXPERTS, ROUTER, mixture
from simulator.workload.layer import Norm, QkNorm

_SILU = {"hidden_act": "silu"}


def _same_width(config: Config, *, shared: int = 0) -> Fields:
    """Return experts that are as wide as `intermediate_size` says, in every layer."""
    width = config["intermediate_size"]
    return mixture(config, moe_intermediate_size=width, shared_expert_intermediate_size=shared)


def _mixtral(config: Config) -> Fields:
    return {**windows(config), **_same_width(config)}


def _phimoe(config: Config) -> Fields:
    head_bias = config["lm_head_bias"]
    return {
        **biases(config),
        **windows(config),
        **_same_width(config),
        "lm_head_bias": head_bias,
    }


def _granitemoe(config: Config) -> Fields:
    shared = config.get("shared_intermediate_size") or 0
    return {**biases(config), **_same_width(config, shared=shared)}


def _olmoe(config: Config) -> Fields:
    return {**biases(config), **_same_width(config)}


def _grok(config: Config) -> Fields:
    return _same_width(config)


def _dbrx(config: Config) -> Fields:
    """Return heads and experts from the two nested tables. Source: modeling_dbrx.py."""
    ffn = config["dbrx_ffn_config"]
    attention, activation = config.get("dbrx_attn_config") or {}, ffn.get("ffn_act_fn") or {}
    experts = {
        **config,
        "num_experts": ffn["moe_num_experts"],
        "num_experts_per_tok": ffn["moe_top_k"],
        "moe_intermediate_size": ffn["ffn_hidden_size"],
        "intermediate_size": None,
    }
    return {
        "num_key_value_heads": attention.get("kv_n_heads", 1),
        "activation": activation.get("name", config["hidden_act"]),
        **mixture(experts),
    }


MIXTRAL = Architecture(
    names=("mixtral",),
    fixed=LLAMA_BLOCK,
    defaults={
        **UNTIED,
        **_SILU,
        "num_key_value_heads": 8,
        "max_position_embeddings": 4096 * 32,
        "sliding_window": None,
    },
    required=("num_experts", "num_experts_per_tok"),
    keys=EXPERTS | {"sliding_window"},
    ignored=ROUTER,
    derive=_mixtral,
)
PHIMOE = Architecture(
    names=("phimoe",),
    fixed={**LLAMA_BLOCK, "norm": Norm.LAYERNORM, "norm_bias": True},
    defaults={
        **UNTIED,
        **_SILU,
        "num_key_value_heads": 8,
        "max_position_embeddings": 4096 * 32,
        "sliding_window": None,
        "lm_head_bias": False,
    },
    required=("num_experts", "num_experts_per_tok"),
    keys=EXPERTS | {"sliding_window", "attention_bias", "lm_head_bias"},
    ignored=ROUTER,
    derive=_phimoe,
)
GRANITEMOE = Architecture(
    names=("granitemoe", "granitemoeshared"),
    fixed=LLAMA_BLOCK,
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 2048},
    required=("num_experts", "num_experts_per_tok"),
    keys=EXPERTS | {"attention_bias", "shared_intermediate_size"},
    ignored=ROUTER,
    derive=_granitemoe,
)
OLMOE = Architecture(
    names=("olmoe", "flex_olmo"),
    fixed={**LLAMA_BLOCK, "qk_norm": QkNorm.FULL_WIDTH},
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 4096},
    required=("num_experts", "num_experts_per_tok"),
    keys=EXPERTS | {"attention_bias"},
    ignored=ROUTER,
    derive=_olmoe,
)
GROK = Architecture(
    # Of the checkpoint's own code: github.com/xai-org/grok-1 model.py, and its port to PyTorch.
    names=("grok-1", "grok"),
    fixed={**LLAMA_BLOCK, "norms_per_layer": 4},
    defaults={**TIED, "hidden_act": "gelu", "max_position_embeddings": 8192},
    required=("num_experts", "num_experts_per_tok"),
    keys=EXPERTS,
    ignored=ROUTER
    | {
        "attn_output_multiplier",
        "embedding_multiplier_scale",
        "max_attn_value",
        "output_multiplier_scale",
    },
    derive=_grok,
)
DBRX = Architecture(
    names=("dbrx",),
    fixed={**LLAMA_BLOCK, "norm": Norm.LAYERNORM},
    defaults={
        **UNTIED,
        **_SILU,
        "max_position_embeddings": 2048,
        "intermediate_size": None,
    },
    required=("ffn_config",),
    keys=frozenset({"dbrx_attn_config", "dbrx_ffn_config"}),
    stated={"tie_word_embeddings": False},
    ignored=ROUTER,
    derive=_dbrx,
)
ENTRIES = (MIXTRAL, PHIMOE, GRANITEMOE, OLMOE, GROK, DBRX)
