"""DeepSeek's models and those built like them: dense first layers, shared experts, groups, MLA."""

from __future__ import annotations

from simulator.errors import InputError, Problem, UnsupportedError
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
from simulator.workload.architectures.experts import (
    FIRST_DENSE,
    GROUPS,
    OWN_WIDTH,
    ROUTER,
    after_first,
    groups,
    mixture,
    uniform,
)
from simulator.workload.layer import QkNorm
from simulator.workload.model_parts import LayerType

_SILU = {"hidden_act": "silu"}
LATENT = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
NO_AUX = "noaux_tc"
"""Experts of few groups, by scores that a correction balances instead of an auxiliary loss."""
UNGROUPED = ("greedy", "gready")
"""The best experts of all; the misspelling is DeepSeek's own, in configuration_deepseek.py."""
_MLA = frozenset({*LATENT, "q_lora_rank"})
_SHARED = OWN_WIDTH | FIRST_DENSE | {"n_shared_experts", "attention_bias"}
_EVERY_LAYER = {"first_k_dense_replace": 0, "moe_layer_freq": 1}


def _experts(config: Config, *, router_bias: bool, grouped: bool) -> Fields:
    """Return experts after the first layers; shared ones are as wide as so many routed ones."""
    width = uniform(config, "moe_intermediate_size") or 0
    shared = width * (uniform(config, "n_shared_experts") or 0)
    return mixture(
        config,
        after_first(config),
        shared_expert_intermediate_size=shared,
        router_bias=router_bias,
        **(groups(config) if grouped else {}),
    )


def _latent(config: Config) -> Fields:
    """Return latent attention; its head_dim is that of queries and keys.

    Source: transformers 4.57, modeling_deepseek_v3.py, DeepseekV3Attention.
    """
    problems = [_required(key) for key in LATENT if not config.get(key)]
    heads, groups_found = config["num_attention_heads"], config.get("num_key_value_heads")
    if groups_found not in (None, heads):
        problems.append(_grouped(groups_found, heads))
    if problems:
        raise InputError(*problems)
    mla = {key: config[key] for key in LATENT}
    return {
        "mla": {**mla, "q_lora_rank": config.get("q_lora_rank") or None},
        "head_dim": mla["qk_nope_head_dim"] + mla["qk_rope_head_dim"],
    }


def _required(key: str) -> Problem:
    fix = "write the value of the model's published config.json"
    return Problem(key=key, rule="is required by latent attention, above 0", fix=fix)


def _grouped(groups_found: int, heads: int) -> Problem:
    return Problem(
        key="num_key_value_heads",
        found=str(groups_found),
        rule=f"latent attention has a key and a value for each of num_attention_heads {heads}",
        fix=f"use num_key_value_heads {heads}",
    )


def _deepseek(config: Config) -> Fields:
    return {**biases(config), **_experts(config, router_bias=False, grouped=False)}


def _deepseek_v2(config: Config) -> Fields:
    """Return also groups where the router is limited to them, and plain attention if asked.

    Source: transformers 4.57, modeling_deepseek_v2.py, DeepseekV2MoEGate; DeepSeek-VL2's
    modeling_deepseek.py for `use_mla`.
    """
    method = config["topk_method"]
    _check_method(method, (*UNGROUPED, "group_limited_greedy", NO_AUX))
    experts = _experts(config, router_bias=method == NO_AUX, grouped=method not in UNGROUPED)
    attention = _latent(config) if config["use_mla"] else {}
    return {**biases(config), **attention, **experts}


def _deepseek_v3(config: Config) -> Fields:
    """Return also the correction of the router's scores and the modules that predict ahead."""
    _check_method(config["topk_method"], (NO_AUX,))
    return {
        **biases(config),
        **_latent(config),
        **_experts(config, router_bias=True, grouped=True),
        "num_nextn_predict_layers": config["num_nextn_predict_layers"],
    }


def _check_method(method: str, known: tuple[str, ...]) -> None:
    if method not in known:
        raise UnsupportedError(
            Problem(
                key="topk_method",
                found=repr(method),
                rule="is not a way to choose experts that is modelled for this architecture",
                fix=f"use one of {', '.join(known)}",
            )
        )


def _glm4_moe(config: Config) -> Fields:
    """Return GLM 4.5: biases of queries, keys and values only, their norms where asked for."""
    return {
        "attention_bias": config["attention_bias"],
        "qk_norm": QkNorm.PER_HEAD if config["use_qk_norm"] else QkNorm.NONE,
        **_experts(config, router_bias=True, grouped=True),
        "num_nextn_predict_layers": config["num_nextn_predict_layers"],
    }


def _dots1(config: Config) -> Fields:
    """Return also windows above `max_window_layers`, where no list says it."""
    types = config.get("layer_types")
    if types is None and config["sliding_window"] is not None:
        layers, full = config["num_hidden_layers"], config["max_window_layers"]
        kinds = (LayerType.FULL.value, LayerType.SLIDING.value)
        types = [kinds[index >= full] for index in range(layers)]
    return {
        **biases(config),
        **windows({**config, "layer_types": types}),
        **_experts(config, router_bias=True, grouped=True),
    }


def _minicpm3(config: Config) -> Fields:
    """Return dense layers with latent attention; values are as wide as a plain head.

    Source: MiniCPM3-4B modeling_minicpm.py, MiniCPMAttention.
    """
    if config.get("attention_bias"):
        raise UnsupportedError(
            Problem(
                key="attention_bias",
                found="True",
                rule="biases of its latent attention are not modelled yet",
                fix="use attention_bias false",
            )
        )
    value = config.get("v_head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return _latent({**config, "v_head_dim": value})


DEEPSEEK = Architecture(
    names=("deepseek",),
    fixed=LLAMA_BLOCK,
    defaults={
        **UNTIED,
        **_SILU,
        **_EVERY_LAYER,
        "max_position_embeddings": 2048,
        "intermediate_size": None,
    },
    required=tuple(sorted(OWN_WIDTH)),
    keys=_SHARED,
    ignored=ROUTER,
    derive=_deepseek,
)
DEEPSEEK_V2 = Architecture(
    names=("deepseek_v2",),
    fixed=LLAMA_BLOCK,
    defaults={
        **UNTIED,
        **_SILU,
        **_EVERY_LAYER,
        "max_position_embeddings": 2048,
        "intermediate_size": None,
        "topk_method": "greedy",
        "use_mla": True,
    },
    required=tuple(sorted(OWN_WIDTH)),
    keys=_SHARED | GROUPS | _MLA | {"topk_method", "use_mla", "mlp_bias"},
    ignored=ROUTER | {"qk_head_dim"},
    derive=_deepseek_v2,
)
DEEPSEEK_V3 = Architecture(
    names=("deepseek_v3", "kimi_k2", "glm4_moe_lite"),
    fixed=LLAMA_BLOCK,
    defaults={
        **UNTIED,
        **_SILU,
        **_EVERY_LAYER,
        "max_position_embeddings": 4096,
        "intermediate_size": None,
        "topk_method": NO_AUX,
        "num_nextn_predict_layers": 0,
    },
    required=(*sorted(OWN_WIDTH), *LATENT, "q_lora_rank", "first_k_dense_replace"),
    keys=_SHARED | GROUPS | _MLA | {"topk_method", "num_nextn_predict_layers"},
    ignored=ROUTER | {"qk_head_dim"},
    derive=_deepseek_v3,
)
_GLM4_MOE_DEFAULTS = {
    **UNTIED,
    **_SILU,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "attention_bias": False,
    "use_qk_norm": False,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "n_shared_experts": 1,
    "num_nextn_predict_layers": 0,
}
GLM4_MOE = Architecture(
    names=("glm4_moe",),
    fixed=LLAMA_BLOCK,
    defaults=_GLM4_MOE_DEFAULTS,
    required=tuple(sorted(OWN_WIDTH)),
    keys=_SHARED | GROUPS | {"use_qk_norm", "num_nextn_predict_layers"},
    ignored=ROUTER,
    derive=_glm4_moe,
)
GLM4V_MOE = Architecture(
    names=("glm4v_moe", "glm4v_moe_text", "Glm4vMoe_text"),
    fixed=LLAMA_BLOCK,
    defaults={
        **_GLM4_MOE_DEFAULTS,
        "max_position_embeddings": 65536,
        "attention_bias": True,
    },
    sizes={
        "vocab_size": 151424,
        "hidden_size": 4096,
        "intermediate_size": 10944,
        "num_hidden_layers": 46,
        "num_attention_heads": 96,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "moe_intermediate_size": 1408,
    },
    required=GLM4_MOE.required,
    keys=(GLM4_MOE.keys - {"use_qk_norm"}),
    ignored=ROUTER,
    derive=_glm4_moe,
)
DOTS1 = Architecture(
    names=("dots1",),
    fixed={**LLAMA_BLOCK, "qk_norm": QkNorm.PER_HEAD},
    defaults={
        **UNTIED,
        **_SILU,
        **_EVERY_LAYER,
        "num_key_value_heads": 32,
        "max_position_embeddings": 2048,
        "sliding_window": 4096,
        "max_window_layers": 62,
        "intermediate_size": None,
    },
    required=tuple(sorted(OWN_WIDTH)),
    keys=_SHARED | GROUPS | {"sliding_window", "max_window_layers", "layer_types"},
    ignored=ROUTER | {"topk_method"},
    derive=_dots1,
)
MINICPM3 = Architecture(
    names=("minicpm3",),
    fixed=LLAMA_BLOCK,
    defaults={**TIED, **_SILU, "max_position_embeddings": 2048},
    required=("kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim"),
    keys=_MLA | {"attention_bias"},
    ignored=frozenset({"scale_emb", "scale_depth", "dim_model_base", "qk_head_dim"}),
    derive=_minicpm3,
)
ENTRIES = (DEEPSEEK, DEEPSEEK_V2, DEEPSEEK_V3, GLM4_MOE, GLM4V_MOE, DOTS1, MINICPM3)
