"""Qwen 2, Qwen 3 and SmolLM 3: Llama's block with windows that a flag turns on."""

from __future__ import annotations

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
from simulator.workload.layer import QkNorm
from simulator.workload.model_parts import LayerType

_SILU = {"hidden_act": "silu"}


_WINDOWS = frozenset({"sliding_window", "layer_types"})


_BIASES = frozenset({"attention_bias", "mlp_bias"})


_QWEN_SIZES = {
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 22016,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
}


_QWEN_WINDOWS = _WINDOWS | {"use_sliding_window", "max_window_layers"}


_QWEN_WINDOW_DEFAULTS = {
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
}


def qwen_windows(config: Config) -> Fields:
    """Return the windows: off unless `use_sliding_window`, then on above `max_window_layers`."""
    if not config["use_sliding_window"] or config["sliding_window"] is None:
        return {}
    if config.get("layer_types") is not None:
        return windows(config)
    full = min(config["max_window_layers"], config["num_hidden_layers"])
    sliding = config["num_hidden_layers"] - full
    types = [LayerType.FULL.value] * full + [LayerType.SLIDING.value] * sliding
    return windows({**config, "layer_types": types})


def _qwen3(config: Config) -> Fields:
    return {**biases(config), **qwen_windows(config)}


def _smollm3(config: Config) -> Fields:
    """Return also the layers without rotary embeddings: every fourth, or those marked 0."""
    layers, interval = config["num_hidden_layers"], config["no_rope_layer_interval"]
    marks = config.get("no_rope_layers")
    if marks is None:
        marks = [int((index + 1) % interval != 0) for index in range(layers)]
    require_length("no_rope_layers", len(marks), layers)
    bare = [index for index, rotary in enumerate(marks) if not rotary]
    return {**biases(config), **qwen_windows(config), "no_rope_layers": bare}


QWEN2 = Architecture(
    names=("qwen2", "qwen2_vl", "qwen2_5_vl", "qwen2_vl_text", "qwen2_5_vl_text"),
    fixed={**LLAMA_BLOCK, "attention_bias": True},
    defaults={
        **UNTIED,
        **_SILU,
        **_QWEN_WINDOW_DEFAULTS,
        "num_key_value_heads": 32,
        "max_position_embeddings": 32768,
    },
    sizes=_QWEN_SIZES,
    keys=_QWEN_WINDOWS,
    derive=qwen_windows,
)


QWEN3 = Architecture(
    names=("qwen3", "qwen3_vl_text"),
    fixed={**LLAMA_BLOCK, "qk_norm": QkNorm.PER_HEAD},
    defaults={
        **UNTIED,
        **_SILU,
        **_QWEN_WINDOW_DEFAULTS,
        "num_key_value_heads": 32,
        "head_dim": 128,
        "max_position_embeddings": 32768,
    },
    sizes=_QWEN_SIZES,
    keys=_QWEN_WINDOWS | {"attention_bias"},
    derive=_qwen3,
)


SMOLLM3 = Architecture(
    names=("smollm3",),
    fixed=LLAMA_BLOCK,
    defaults={
        **TIED,
        **_SILU,
        "num_key_value_heads": 4,
        "max_position_embeddings": 32768,
        "use_sliding_window": False,
        "sliding_window": None,
        "max_window_layers": 0,
        "no_rope_layer_interval": 4,
    },
    keys=_QWEN_WINDOWS | _BIASES | {"no_rope_layers", "no_rope_layer_interval"},
    derive=_smollm3,
)


ENTRIES = (
    QWEN2,
    QWEN3,
    SMOLLM3,
)
