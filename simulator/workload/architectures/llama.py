"""Llama and the models that share its block: RMS norms, gated MLP, rotary positions."""

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
from simulator.workload.layer import QkNorm
from simulator.workload.model_parts import LayerType

_LLAMA_SIZES = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
}
_MISTRAL_SIZES = {**_LLAMA_SIZES, "intermediate_size": 14336}
_QWEN_SIZES = {**_LLAMA_SIZES, "vocab_size": 151936, "intermediate_size": 22016}
_BIASES = frozenset({"attention_bias", "mlp_bias"})
_WINDOWS = frozenset({"sliding_window", "layer_types"})
_QWEN_WINDOWS = _WINDOWS | {"use_sliding_window", "max_window_layers"}
_SILU = {"hidden_act": "silu"}


def _qwen_windows(config: Config) -> Fields:
    """Return the windows: off unless `use_sliding_window`, then on above `max_window_layers`."""
    if not config["use_sliding_window"] or config["sliding_window"] is None:
        return {}
    if config.get("layer_types") is not None:
        return windows(config)
    full = min(config["max_window_layers"], config["num_hidden_layers"])
    sliding = config["num_hidden_layers"] - full
    types = [LayerType.FULL.value] * full + [LayerType.SLIDING.value] * sliding
    return windows({**config, "layer_types": types})


def _qwen2(config: Config) -> Fields:
    return _qwen_windows(config)


def _qwen3(config: Config) -> Fields:
    return {**biases(config), **_qwen_windows(config)}


def _helium(config: Config) -> Fields:
    """Return biases without one on the output projection, which has none ever."""
    return {**biases(config), "attention_output_bias": False}


def _use_bias(config: Config) -> Fields:
    bias = config["use_bias"]
    return {"attention_bias": bias, "attention_output_bias": bias, "mlp_bias": bias}


def _seed_oss(config: Config) -> Fields:
    return {**biases(config), "attention_output_bias": config["attention_out_bias"]}


def _smollm3(config: Config) -> Fields:
    """Return also the layers without rotary embeddings: every fourth, or those marked 0."""
    layers, interval = config["num_hidden_layers"], config["no_rope_layer_interval"]
    marks = config.get("no_rope_layers")
    if marks is None:
        marks = [int((index + 1) % interval != 0) for index in range(layers)]
    bare = [index for index, rotary in enumerate(marks) if not rotary]
    return {**biases(config), **_qwen_windows(config), "no_rope_layers": bare}


_QWEN_WINDOW_DEFAULTS = {
    "use_sliding_window": False,
    "sliding_window": 4096,
    "max_window_layers": 28,
}

LLAMA = Architecture(
    names=("llama", "Yi", "xverse", "granite"),
    fixed=LLAMA_BLOCK,
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 2048},
    sizes=_LLAMA_SIZES,
    keys=_BIASES,
    derive=biases,
)
ARCEE = Architecture(
    names=("arcee",),
    fixed={**LLAMA_BLOCK, "gated_mlp": False},
    defaults={**UNTIED, "hidden_act": "relu2", "max_position_embeddings": 4096},
    keys=_BIASES,
    derive=biases,
)
HUNYUAN = Architecture(
    names=("hunyuan_v1_dense",),
    fixed={**LLAMA_BLOCK, "qk_norm": QkNorm.PER_HEAD},
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 2048},
    keys=_BIASES - {"mlp_bias"},
    derive=biases,
)
HELIUM = Architecture(
    names=("helium",),
    fixed=LLAMA_BLOCK,
    defaults={**UNTIED, **_SILU, "head_dim": 128, "max_position_embeddings": 4096},
    keys=_BIASES,
    derive=_helium,
)
MISTRAL = Architecture(
    names=("mistral", "ministral"),
    fixed=LLAMA_BLOCK,
    defaults={
        **UNTIED,
        **_SILU,
        "num_key_value_heads": 8,
        "max_position_embeddings": 4096 * 32,
        "sliding_window": 4096,
    },
    sizes=_MISTRAL_SIZES,
    keys=_WINDOWS,
    derive=windows,
)
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
    derive=_qwen2,
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
PHI3 = Architecture(
    names=("phi3",),
    fixed=LLAMA_BLOCK,
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 4096},
    keys=frozenset({"sliding_window"}),
    derive=windows,
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
ERNIE = Architecture(
    names=("ernie4_5",),
    fixed=LLAMA_BLOCK,
    defaults={
        **TIED,
        **_SILU,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "max_position_embeddings": 131072,
        "use_bias": False,
    },
    keys=frozenset({"use_bias"}),
    derive=_use_bias,
)
SEED_OSS = Architecture(
    names=("seed_oss",),
    fixed=LLAMA_BLOCK,
    defaults={
        **UNTIED,
        **_SILU,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 524288,
        "attention_bias": True,
        "attention_out_bias": False,
    },
    keys=_BIASES | {"attention_out_bias"},
    derive=_seed_oss,
)
ENTRIES = (
    LLAMA,
    ARCEE,
    HUNYUAN,
    HELIUM,
    MISTRAL,
    QWEN2,
    QWEN3,
    PHI3,
    SMOLLM3,
    ERNIE,
    SEED_OSS,
)
