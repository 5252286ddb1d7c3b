"""Models with layer norms and rotary positions: StarCoder 2, StableLM, Nemotron."""

from __future__ import annotations

from simulator.workload.architectures.entry import (
    GPT_BLOCK,
    TIED,
    UNTIED,
    Architecture,
    Config,
    Fields,
    biases,
)
from simulator.workload.model_parts import Position


def _starcoder2(config: Config) -> Fields:
    return {
        **biases({"attention_bias": config["use_bias"], "mlp_bias": config["use_bias"]}),
        "sliding_window": config.get("sliding_window"),
    }


def _stablelm(config: Config) -> Fields:
    parallel = config["use_parallel_residual"]
    return {
        "attention_bias": config["use_qkv_bias"],
        "qk_norm": "full-width" if config["qk_layernorm"] else "none",
        "parallel_block": parallel,
        "norms_per_layer": 1 if parallel else 2,
    }


STARCODER2 = Architecture(
    names=("starcoder2",),
    fixed={**GPT_BLOCK, "position": Position.ROPE},
    defaults={
        **TIED,
        "hidden_act": "gelu_pytorch_tanh",
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "use_bias": True,
    },
    keys=frozenset({"use_bias", "sliding_window"}),
    stated={"mlp_type": "default", "norm_type": "layer_norm"},
    derive=_starcoder2,
)


STABLELM = Architecture(
    names=("stablelm", "stablelm_epoch"),
    fixed={**GPT_BLOCK, "gated_mlp": True, "position": Position.ROPE},
    defaults={
        **UNTIED,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "use_qkv_bias": False,
        "qk_layernorm": False,
        "use_parallel_residual": False,
    },
    keys=frozenset({"use_qkv_bias", "qk_layernorm", "use_parallel_residual"}),
    derive=_stablelm,
)


NEMOTRON = Architecture(
    names=("nemotron",),
    fixed={**GPT_BLOCK, "position": Position.ROPE},
    defaults={**UNTIED, "hidden_act": "relu2", "max_position_embeddings": 4096},
    keys=frozenset({"attention_bias", "mlp_bias"}),
    derive=biases,
)


ENTRIES = (
    STARCODER2,
    STABLELM,
    NEMOTRON,
)
