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

_LLAMA_SIZES = {
    "vocab_size": 32000,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
}
_MISTRAL_SIZES = {**_LLAMA_SIZES, "intermediate_size": 14336}
_BIASES = frozenset({"attention_bias", "mlp_bias"})
_WINDOWS = frozenset({"sliding_window", "layer_types"})
_SILU = {"hidden_act": "silu"}


def _helium(config: Config) -> Fields:
    """Return biases without one on the output projection, which has none ever."""
    return {**biases(config), "attention_output_bias": False}


def _use_bias(config: Config) -> Fields:
    bias = config["use_bias"]
    return {"attention_bias": bias, "attention_output_bias": bias, "mlp_bias": bias}


def _seed_oss(config: Config) -> Fields:
    return {**biases(config), "attention_output_bias": config["attention_out_bias"]}


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
    stated={"use_qk_norm": True, "norm_type": "rms"},
    ignored=frozenset({"cla_share_factor", "org_vocab_size", "attention_head_dim", "dense_list"}),
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
PHI3 = Architecture(
    names=("phi3",),
    fixed=LLAMA_BLOCK,
    defaults={**UNTIED, **_SILU, "max_position_embeddings": 4096},
    keys=frozenset({"sliding_window"}),
    derive=windows,
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
    stated={"compression_ratio": 1.0, "use_rmsnorm": True},
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
    PHI3,
    ERNIE,
    SEED_OSS,
)
