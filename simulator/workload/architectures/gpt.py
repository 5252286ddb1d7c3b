"""GPT-2 and its descendants: layer norms with biases, an MLP without a gate."""

from __future__ import annotations

from simulator.errors import Problem, UnsupportedError
from simulator.workload.architectures.entry import (
    ALL_BIASES,
    GPT_BLOCK,
    TIED,
    UNTIED,
    Architecture,
    Config,
    Fields,
    biases,
    four_times_hidden,
    require_length,
)
from simulator.workload.model_parts import LayerType, Position

OPT_EXTRA_POSITIONS = 2
"""Rows that OPT's table of positions has beyond max_position_embeddings (modeling_opt.py)."""
_GELU_NEW = {"hidden_act": "gelu_new"}


def _gpt_bigcode(config: Config) -> Fields:
    heads = 1 if config["multi_query"] else config["num_attention_heads"]
    return {**four_times_hidden(config), "num_key_value_heads": heads}


def _gpt_neo(config: Config) -> Fields:
    """Return also which layers are local, from `attention_types` [[kinds, repeats], ...]."""
    fields = four_times_hidden(config)
    names = {"global": LayerType.FULL.value, "local": LayerType.SLIDING.value}
    count = sum(len(kinds) * repeats for kinds, repeats in config["attention_types"])
    require_length("attention_types", count, config["num_hidden_layers"])
    types = [
        names.get(kind, str(kind))
        for kinds, repeats in config["attention_types"]
        for _ in range(repeats)
        for kind in kinds
    ]
    if LayerType.SLIDING in types:
        fields["sliding_window"] = config["window_size"]
    return {**fields, "layer_types": types}


def _gpt_neox(config: Config) -> Fields:
    return {
        **biases({**config, "mlp_bias": True}),
        "parallel_block": config["use_parallel_residual"],
    }


def _opt(config: Config) -> Fields:
    _refuse_projected_embedding(config)
    bias, affine = config["enable_bias"], config["layer_norm_elementwise_affine"]
    final = config["do_layer_norm_before"] and not config["_remove_final_layer_norm"]
    return {
        "attention_bias": bias,
        "attention_output_bias": bias,
        "mlp_bias": bias,
        "norm": "layernorm" if affine else "nonparametric",
        "norm_bias": affine,
        "final_norm": final,
        "learned_positions": config["max_position_embeddings"] + OPT_EXTRA_POSITIONS,
    }


def _refuse_projected_embedding(config: Config) -> None:
    width = config.get("word_embed_proj_dim")
    if width is not None and width != config["hidden_size"]:
        raise UnsupportedError(
            Problem(
                key="word_embed_proj_dim",
                found=str(width),
                rule="embeddings narrower than hidden_size are not modelled yet",
                fix=f"use word_embed_proj_dim {config['hidden_size']} or another model",
            )
        )


GPT2 = Architecture(
    names=("gpt2",),
    fixed={**GPT_BLOCK, **ALL_BIASES, "position": Position.LEARNED},
    defaults={**TIED, **_GELU_NEW, "max_position_embeddings": 1024, "intermediate_size": None},
    derive=four_times_hidden,
)
GPT_BIGCODE = Architecture(
    names=("gpt_bigcode",),
    fixed={**GPT_BLOCK, **ALL_BIASES, "position": Position.LEARNED},
    defaults={
        **TIED,
        "hidden_act": "gelu_pytorch_tanh",
        "max_position_embeddings": 1024,
        "intermediate_size": None,
        "multi_query": True,
    },
    keys=frozenset({"multi_query"}),
    derive=_gpt_bigcode,
)
GPT_NEO = Architecture(
    names=("gpt_neo",),
    fixed={
        **GPT_BLOCK,
        "attention_output_bias": True,
        "mlp_bias": True,
        "position": Position.LEARNED,
    },
    defaults={
        **TIED,
        **_GELU_NEW,
        "max_position_embeddings": 2048,
        "intermediate_size": None,
        "attention_types": [[["global", "local"], 12]],
        "window_size": 256,
    },
    # The library writes attention_layers, but works it out from attention_types.
    keys=frozenset({"attention_types", "attention_layers", "window_size"}),
    derive=_gpt_neo,
)
GPT_NEOX = Architecture(
    names=("gpt_neox",),
    fixed={**GPT_BLOCK, "position": Position.ROPE},
    defaults={
        **UNTIED,
        "hidden_act": "gelu",
        "max_position_embeddings": 2048,
        "attention_bias": True,
        "use_parallel_residual": True,
    },
    keys=frozenset({"attention_bias", "use_parallel_residual"}),
    derive=_gpt_neox,
)
GPTJ = Architecture(
    names=("gptj", "codegen"),
    fixed={
        **GPT_BLOCK,
        "mlp_bias": True,
        "lm_head_bias": True,
        "position": Position.ROPE,
        "parallel_block": True,
        "norms_per_layer": 1,
    },
    defaults={**UNTIED, **_GELU_NEW, "max_position_embeddings": 2048, "intermediate_size": None},
    derive=four_times_hidden,
)
PHI = Architecture(
    names=("phi",),
    fixed={
        **GPT_BLOCK,
        **ALL_BIASES,
        "lm_head_bias": True,
        "position": Position.ROPE,
        "parallel_block": True,
        "norms_per_layer": 1,
    },
    defaults={**UNTIED, **_GELU_NEW, "max_position_embeddings": 2048},
)
OPT = Architecture(
    names=("opt",),
    fixed={**GPT_BLOCK, "position": Position.LEARNED},
    defaults={
        **TIED,
        "hidden_act": "relu",
        "max_position_embeddings": 2048,
        "enable_bias": True,
        "layer_norm_elementwise_affine": True,
        "do_layer_norm_before": True,
        "_remove_final_layer_norm": False,
    },
    keys=frozenset(
        {
            "enable_bias",
            "layer_norm_elementwise_affine",
            "do_layer_norm_before",
            "_remove_final_layer_norm",
            "word_embed_proj_dim",
        }
    ),
    derive=_opt,
)
ENTRIES = (
    GPT2,
    GPT_BIGCODE,
    GPT_NEO,
    GPT_NEOX,
    GPTJ,
    PHI,
    OPT,
)
