"""BLOOM, Falcon and MPT, whose positions may be linear attention biases (ALiBi)."""

from __future__ import annotations

from typing import Any

from simulator.workload.architectures.entry import (
    ALL_BIASES,
    GPT_BLOCK,
    TIED,
    Architecture,
    Config,
    Fields,
    biases,
    four_times_hidden,
)
from simulator.workload.model_parts import Position

_MPT_GATED = {"mptmlp": False, "mptglu": True}


def _four_times(config: Config) -> Fields:
    return {"intermediate_size": 4 * config["hidden_size"]}


def _falcon(config: Config) -> Fields:
    new = config["new_decoder_architecture"]
    norms = config.get("num_ln_in_parallel_attn") or (2 if new else 1)
    parallel = config["parallel_attn"] or new
    return {
        **four_times_hidden(config),
        **biases({"attention_bias": config["bias"], "mlp_bias": config["bias"]}),
        "num_key_value_heads": _falcon_groups(config),
        "position": Position.ALIBI if config["alibi"] else Position.ROPE,
        "parallel_block": parallel,
        "norms_per_layer": 2 if not config["parallel_attn"] else norms,
    }


def _falcon_groups(config: Config) -> Any:
    if config["new_decoder_architecture"]:
        return config.get("num_key_value_heads") or config["num_attention_heads"]
    return 1 if config["multi_query"] else config["num_attention_heads"]


def _mpt(config: Config) -> Fields:
    attention = config.get("attn_config") or {}
    bias = not config["no_bias"]
    return {
        "intermediate_size": config["expansion_ratio"] * config["hidden_size"],
        **biases({"attention_bias": bias, "mlp_bias": bias}),
        "norm_bias": bias,
        "norm": "rmsnorm" if "rms" in config["norm_type"] else "layernorm",
        "num_key_value_heads": _mpt_groups(config, attention),
        "position": _mpt_position(config, attention),
        **_mpt_window(attention),
        "gated_mlp": _MPT_GATED[(config.get("ffn_config") or {}).get("ffn_type", "mptmlp")],
    }


def _mpt_groups(config: Config, attention: Config) -> Any:
    match attention.get("attn_type", "multihead_attention"):
        case "multiquery_attention":
            return 1
        case "grouped_query_attention":
            return attention["kv_n_heads"]
        case _:
            return config["num_attention_heads"]


def _mpt_position(config: Config, attention: Config) -> Position:
    if attention.get("rope", False):
        return Position.ROPE
    if attention.get("alibi", True):
        return Position.ALIBI
    return Position.LEARNED if config["learned_pos_emb"] else Position.NONE


def _mpt_window(attention: Config) -> Fields:
    window = attention.get("sliding_window_size", -1)
    return {} if window == -1 else {"sliding_window": window}


BLOOM = Architecture(
    names=("bloom",),
    fixed={**GPT_BLOCK, **ALL_BIASES, "position": Position.ALIBI, "embedding_norm": True},
    # The published configs' seq_length; ALiBi itself has no bound.
    defaults={
        **TIED,
        "hidden_act": "gelu",
        "max_position_embeddings": 2048,
        "intermediate_size": None,
    },
    derive=_four_times,
)
FALCON = Architecture(
    names=("falcon", "RefinedWeb", "RefinedWebModel"),
    fixed=GPT_BLOCK,
    defaults={
        **TIED,
        "hidden_act": "gelu",
        "max_position_embeddings": 2048,
        "intermediate_size": None,
        "alibi": False,
        "bias": False,
        "multi_query": True,
        "parallel_attn": True,
        "new_decoder_architecture": False,
    },
    keys=frozenset(
        {
            "alibi",
            "bias",
            "multi_query",
            "parallel_attn",
            "new_decoder_architecture",
            "num_ln_in_parallel_attn",
        }
    ),
    derive=_falcon,
)
MPT = Architecture(
    names=("mpt",),
    fixed=GPT_BLOCK,
    defaults={
        **TIED,
        "hidden_act": "gelu",
        "max_position_embeddings": 2048,
        "intermediate_size": None,
        "expansion_ratio": 4,
        "no_bias": True,
        "learned_pos_emb": True,
        "norm_type": "low_precision_layernorm",
    },
    keys=frozenset(
        {
            "expansion_ratio",
            "no_bias",
            "learned_pos_emb",
            "norm_type",
            "attn_config",
            "ffn_config",
        }
    ),
    derive=_mpt,
)
ENTRIES = (BLOOM, FALCON, MPT)
