"""Architectures whose configuration ships with their checkpoints rather than with the library."""

from __future__ import annotations

from simulator.workload.architectures.entry import (
    LLAMA_BLOCK,
    UNTIED,
    Architecture,
    Config,
    Fields,
    biases,
)

_SILU = {"hidden_act": "silu"}


def _internlm(config: Config) -> Fields:
    """Return biases of all four attention projections. Source: modeling_internlm2.py."""
    return biases({"attention_bias": config["bias"]})


def _internlm3(config: Config) -> Fields:
    """Return `qkv_bias` apart from `bias` of the rest. Source: modeling_internlm3.py."""
    bias = config["bias"]
    return {
        "attention_bias": config["qkv_bias"],
        "attention_output_bias": bias,
        "mlp_bias": bias,
    }


def _qwen(config: Config) -> Fields:
    """Return half the intermediate size: its key counts gate and up together.

    Source: Qwen-7B modeling_qwen.py (w1, w2: intermediate_size // 2; c_attn has a bias always).
    """
    bias = not config["no_bias"]
    return {
        "intermediate_size": config["intermediate_size"] // 2,
        "attention_output_bias": bias,
        "mlp_bias": bias,
    }


def _chatglm(config: Config) -> Fields:
    """Return grouped heads, norm and biases. Source: ChatGLM2 modeling_chatglm.py."""
    groups = config.get("num_key_value_heads", 1)
    grouped = config["multi_query_attention"]
    every = config["add_bias_linear"]
    return {
        "num_key_value_heads": groups if grouped else config["num_attention_heads"],
        "norm": "rmsnorm" if config["rmsnorm"] else "layernorm",
        "norm_bias": not config["rmsnorm"],
        "attention_bias": every or config["add_qkv_bias"],
        "attention_output_bias": every,
        "mlp_bias": every,
        "final_norm": config["post_layer_norm"],
    }


INTERNLM = Architecture(
    names=("internlm",),
    fixed=LLAMA_BLOCK,
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 2048, "bias": True},
    keys=frozenset({"bias"}),
    derive=_internlm,
)
INTERNLM2 = Architecture(
    names=("internlm2",),
    fixed=LLAMA_BLOCK,
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 2048, "bias": True},
    keys=frozenset({"bias"}),
    derive=_internlm,
)
INTERNLM3 = Architecture(
    names=("internlm3",),
    fixed=LLAMA_BLOCK,
    defaults={
        **UNTIED,
        **_SILU,
        "num_key_value_heads": 2,
        "max_position_embeddings": 32768,
        "qkv_bias": False,
        "bias": False,
    },
    keys=frozenset({"qkv_bias", "bias"}),
    derive=_internlm3,
)
QWEN = Architecture(
    names=("qwen",),
    fixed={**LLAMA_BLOCK, "attention_bias": True},
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 8192, "no_bias": True},
    keys=frozenset({"no_bias"}),
    derive=_qwen,
)
CHATGLM = Architecture(
    names=("chatglm",),
    fixed=LLAMA_BLOCK,
    defaults={
        **UNTIED,
        **_SILU,
        "max_position_embeddings": 2048,
        "multi_query_attention": False,
        "add_bias_linear": False,
        "add_qkv_bias": False,
        "rmsnorm": True,
        "post_layer_norm": True,
    },
    keys=frozenset(
        {
            "multi_query_attention",
            "add_bias_linear",
            "add_qkv_bias",
            "rmsnorm",
            "post_layer_norm",
        }
    ),
    derive=_chatglm,
)
ENTRIES = (INTERNLM, INTERNLM2, INTERNLM3, QWEN, CHATGLM)
