"""Models whose norms differ from Llama's: Gemma, OLMo, Cohere, GLM, EXAONE."""

from __future__ import annotations

from simulator.workload.architectures.entry import (
    LLAMA_BLOCK,
    TIED,
    UNTIED,
    Architecture,
    Config,
    Fields,
    biases,
    full_layers,
    windows,
)
from simulator.workload.layer import Norm, QkNorm

_SILU = {"hidden_act": "silu"}
_GEMMA = {**TIED, "hidden_act": "gelu_pytorch_tanh", "head_dim": 256}
_WINDOWS = frozenset({"sliding_window", "sliding_window_pattern", "layer_types"})
GEMMA2_PATTERN = 2
GEMMA3_PATTERN = 6
COHERE2_PATTERN = 4
OLMO3_PATTERN = 4
EXAONE4_PATTERN = 4


def _gemma2(config: Config) -> Fields:
    return {**biases(config), **windows(config, pattern=GEMMA2_PATTERN)}


def _gemma3(config: Config) -> Fields:
    return {**biases(config), **windows(config, pattern=GEMMA3_PATTERN)}


def _olmo3(config: Config) -> Fields:
    return {**biases(config), **windows(config, pattern=OLMO3_PATTERN)}


def _cohere(config: Config) -> Fields:
    qk_norm = QkNorm.FULL_WIDTH if config["use_qk_norm"] else QkNorm.NONE
    return {**biases(config), "qk_norm": qk_norm}


def _cohere2(config: Config) -> Fields:
    """Return also the layers without rotary embeddings: those whose attention is full."""
    fields = windows(config, pattern=COHERE2_PATTERN)
    bare = full_layers(config, fields) if fields else []
    return {**biases(config), **fields, "no_rope_layers": bare}


def _exaone4(config: Config) -> Fields:
    """Return also the layers without rotary embeddings: full ones among sliding ones."""
    fields = windows(config, pattern=EXAONE4_PATTERN)
    bare = full_layers(config, fields) if fields else []
    return {**fields, "no_rope_layers": bare}


def _glm(config: Config) -> Fields:
    return {"attention_bias": config["attention_bias"]}


GEMMA = Architecture(
    names=("gemma",),
    fixed=LLAMA_BLOCK,
    defaults={**_GEMMA, "num_key_value_heads": 16, "max_position_embeddings": 8192},
    sizes={
        "vocab_size": 256000,
        "hidden_size": 3072,
        "intermediate_size": 24576,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
    },
    keys=frozenset({"attention_bias"}),
    derive=biases,
)
_GEMMA2_SIZES = {
    "vocab_size": 256000,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
}
GEMMA2 = Architecture(
    names=("gemma2",),
    fixed={**LLAMA_BLOCK, "norms_per_layer": 4},
    defaults={
        **_GEMMA,
        "num_key_value_heads": 4,
        "max_position_embeddings": 8192,
        "sliding_window": 4096,
    },
    sizes=_GEMMA2_SIZES,
    keys=_WINDOWS | {"attention_bias"},
    derive=_gemma2,
)
GEMMA3 = Architecture(
    names=("gemma3_text", "gemma3"),
    fixed={**LLAMA_BLOCK, "norms_per_layer": 4, "qk_norm": QkNorm.PER_HEAD},
    defaults={
        **_GEMMA,
        "num_key_value_heads": 4,
        "max_position_embeddings": 131072,
        "sliding_window": 4096,
    },
    sizes={**_GEMMA2_SIZES, "vocab_size": 262208},
    keys=_WINDOWS | {"attention_bias"},
    derive=_gemma3,
)
OLMO = Architecture(
    names=("olmo",),
    fixed={**LLAMA_BLOCK, "norm": Norm.NONPARAMETRIC},
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 2048},
    keys=frozenset({"attention_bias"}),
    derive=biases,
)
OLMO2 = Architecture(
    names=("olmo2",),
    fixed={**LLAMA_BLOCK, "qk_norm": QkNorm.FULL_WIDTH},
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 2048},
    keys=frozenset({"attention_bias"}),
    derive=biases,
)
OLMO3 = Architecture(
    names=("olmo3",),
    fixed=OLMO2.fixed,
    defaults={**OLMO2.defaults, "sliding_window": 4096},
    keys=frozenset({"attention_bias", "sliding_window", "layer_types"}),
    derive=_olmo3,
)
_COHERE_BLOCK = {
    **LLAMA_BLOCK,
    "norm": Norm.LAYERNORM,
    "parallel_block": True,
    "norms_per_layer": 1,
}
COHERE = Architecture(
    names=("cohere",),
    fixed=_COHERE_BLOCK,
    defaults={**TIED, **_SILU, "max_position_embeddings": 8192, "use_qk_norm": False},
    keys=frozenset({"attention_bias", "use_qk_norm"}),
    derive=_cohere,
)
COHERE2 = Architecture(
    names=("cohere2",),
    fixed=_COHERE_BLOCK,
    defaults={**TIED, **_SILU, "max_position_embeddings": 8192, "sliding_window": 4096},
    keys=_WINDOWS | {"attention_bias"},
    stated={
        "order_of_interleaved_layers": "local_attn_first",
        "use_embedding_sharing": True,
        "use_gated_activation": True,
        "use_parallel_block": True,
    },
    derive=_cohere2,
)
_GLM_DEFAULTS = {
    **UNTIED,
    **_SILU,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "max_position_embeddings": 131072,
    "attention_bias": True,
}
GLM = Architecture(
    names=("glm",),
    fixed=LLAMA_BLOCK,
    defaults=_GLM_DEFAULTS,
    keys=frozenset({"attention_bias"}),
    derive=_glm,
)
GLM4 = Architecture(
    names=("glm4",),
    fixed={**LLAMA_BLOCK, "norms_per_layer": 4},
    defaults=_GLM_DEFAULTS,
    keys=frozenset({"attention_bias"}),
    derive=_glm,
)
EXAONE4 = Architecture(
    names=("exaone4",),
    fixed={**LLAMA_BLOCK, "qk_norm": QkNorm.PER_HEAD},
    defaults={
        **UNTIED,
        **_SILU,
        "num_key_value_heads": 32,
        "max_position_embeddings": 2048,
        "sliding_window": 4096,
    },
    keys=_WINDOWS,
    derive=_exaone4,
)
ENTRIES = (GEMMA, GEMMA2, GEMMA3, OLMO, OLMO2, OLMO3, COHERE, COHERE2, GLM, GLM4, EXAONE4)
