"""Qwen's mixtures of experts: Qwen 2 with a gated shared expert, Qwen 3, and Qwen 3 VL's text."""

from __future__ import annotations

from simulator.workload.architectures.entry import (
    LLAMA_BLOCK,
    UNTIED,
    Architecture,
    Config,
    Fields,
    biases,
)
from simulator.workload.architectures.experts import OWN_WIDTH, ROUTER, STEP, by_step, mixture
from simulator.workload.architectures.qwen import QWEN2, qwen_windows
from simulator.workload.layer import QkNorm

_SHARED = {
    **UNTIED,
    "hidden_act": "silu",
    "decoder_sparse_step": 1,
    "mlp_only_layers": (),
    "intermediate_size": None,
}


def _qwen2_moe(config: Config) -> Fields:
    """Return also the shared expert, whose output a gate of one channel scales.

    Source: transformers 4.57, modeling_qwen2_moe.py, Qwen2MoeSparseMoeBlock.
    """
    shared = config.get("shared_expert_intermediate_size") or 0
    experts = mixture(
        config,
        by_step(config),
        shared_expert_intermediate_size=shared,
        shared_expert_gate=shared > 0,
    )
    return {"attention_bias": config["qkv_bias"], **qwen_windows(config), **experts}


def _qwen3_moe(config: Config) -> Fields:
    """Return also the window: off unless `use_sliding_window`, then on in every layer."""
    window = config["sliding_window"] if config["use_sliding_window"] else None
    return {**biases(config), "sliding_window": window, **mixture(config, by_step(config))}


def _qwen3_vl_moe(config: Config) -> Fields:
    return {**biases(config), **mixture(config, by_step(config))}


QWEN2_MOE = Architecture(
    names=("qwen2_moe",),
    fixed=LLAMA_BLOCK,
    defaults={
        **_SHARED,
        "num_key_value_heads": 16,
        "max_position_embeddings": 32768,
        "use_sliding_window": False,
        "sliding_window": 4096,
        "max_window_layers": 28,
        "qkv_bias": True,
    },
    required=(*sorted(OWN_WIDTH), "shared_expert_intermediate_size"),
    keys=QWEN2.keys | OWN_WIDTH | STEP | {"shared_expert_intermediate_size", "qkv_bias"},
    ignored=ROUTER,
    derive=_qwen2_moe,
)
QWEN3_MOE = Architecture(
    names=("qwen3_moe",),
    fixed={**LLAMA_BLOCK, "qk_norm": QkNorm.PER_HEAD},
    defaults={
        **_SHARED,
        "num_key_value_heads": 4,
        "max_position_embeddings": 32768,
        "use_sliding_window": False,
        "sliding_window": 4096,
    },
    required=tuple(sorted(OWN_WIDTH)),
    keys=OWN_WIDTH | STEP | {"attention_bias", "use_sliding_window", "sliding_window"},
    stated={"use_qk_norm": True},
    ignored=ROUTER | {"max_window_layers"},
    derive=_qwen3_moe,
)
QWEN3_VL_MOE = Architecture(
    names=("qwen3_vl_moe", "qwen3_vl_moe_text"),
    fixed=QWEN3_MOE.fixed,
    defaults={
        **{key: value for key, value in _SHARED.items() if key != "intermediate_size"},
        "num_key_value_heads": 16,
        "max_position_embeddings": 128000,
    },
    sizes={
        "vocab_size": 151936,
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "num_experts": 60,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 1408,
    },
    required=QWEN3_MOE.required,
    keys=OWN_WIDTH | STEP | {"attention_bias"},
    ignored=ROUTER,
    derive=_qwen3_vl_moe,
)
ENTRIES = (QWEN2_MOE, QWEN3_MOE, QWEN3_VL_MOE)
