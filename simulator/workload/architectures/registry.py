"""Every architecture that can be imported, and those that are known but not modelled yet."""

from __future__ import annotations

from simulator.workload.architectures import (
    alibi,
    deci,
    gpt,
    gpt_rope,
    llama,
    norms,
    openelm,
    own_code,
    qwen,
)
from simulator.workload.architectures.entry import Architecture

ENTRIES = (
    *llama.ENTRIES,
    *qwen.ENTRIES,
    *norms.ENTRIES,
    *gpt.ENTRIES,
    *gpt_rope.ENTRIES,
    *alibi.ENTRIES,
    *own_code.ENTRIES,
    *deci.ENTRIES,
    *openelm.ENTRIES,
)
ARCHITECTURES: dict[str, Architecture] = {name: entry for entry in ENTRIES for name in entry.names}

_MOE = "mixture of experts"
_MLA = "multi-head latent attention"
_SSM = "state-space, convolution or linear-attention layers"
_CROSS = "an encoder-decoder or cross-attention model"
_SHARED = "layers that share keys, values or inputs"

UNSUPPORTED: dict[str, str] = {
    **dict.fromkeys(
        (
            "arctic",
            "dbrx",
            "ernie4_5_moe",
            "flex_olmo",
            "glm4_moe",
            "glm4v_moe",
            "gpt_oss",
            "granitemoe",
            "granitemoeshared",
            "grok-1",
            "hunyuan_v1_moe",
            "jetmoe",
            "llama4",
            "llama4_text",
            "minimax",
            "mixtral",
            "nllb_moe",
            "olmoe",
            "phimoe",
            "qwen2_moe",
            "qwen3_moe",
            "qwen3_omni_moe",
            "qwen3_vl_moe",
            "qwen3_vl_moe_text",
            "deepseek",
            "switch_transformers",
            "dots1",
        ),
        _MOE,
    ),
    **dict.fromkeys(
        ("deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "longcat_flash"),
        f"{_MLA} and {_MOE}",
    ),
    "minicpm3": _MLA,
    **dict.fromkeys(
        (
            "bamba",
            "falcon_h1",
            "falcon_mamba",
            "granitemoehybrid",
            "jamba",
            "lfm2",
            "mamba",
            "mamba2",
            "nemotron_h",
            "qwen3_next",
            "recurrent_gemma",
            "rwkv",
            "xlstm",
            "zamba",
            "zamba2",
        ),
        _SSM,
    ),
    **dict.fromkeys(
        (
            "bart",
            "blenderbot",
            "encoder-decoder",
            "led",
            "longt5",
            "m2m_100",
            "marian",
            "mbart",
            "mllama",
            "mllama_text_model",
            "mt5",
            "pegasus",
            "t5",
            "t5gemma",
            "umt5",
            "whisper",
        ),
        _CROSS,
    ),
    **dict.fromkeys(("gemma3n", "gemma3n_text"), _SHARED),
    **dict.fromkeys(
        (
            "albert",
            "bert",
            "deberta",
            "deberta-v2",
            "distilbert",
            "electra",
            "modernbert",
            "roberta",
        ),
        "an encoder",
    ),
    **dict.fromkeys(
        ("clip", "dinov2", "siglip", "siglip_vision_model", "vit", "clip_vision_model"),
        "a vision tower",
    ),
}
"""`model_type` -> what it has that is not modelled yet."""
