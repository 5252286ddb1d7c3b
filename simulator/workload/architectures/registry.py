"""Every architecture that can be imported, and those that are known but not modelled yet."""

from __future__ import annotations

from simulator.workload.architectures import (
    alibi,
    deci,
    deepseek,
    gpt,
    gpt_rope,
    llama,
    norms,
    openelm,
    own_code,
    own_moe,
    qwen,
    qwen_moe,
    sparse,
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
    *sparse.ENTRIES,
    *qwen_moe.ENTRIES,
    *deepseek.ENTRIES,
    *own_moe.ENTRIES,
)
ARCHITECTURES: dict[str, Architecture] = {name: entry for entry in ENTRIES for name in entry.names}

_SSM = "state-space, convolution or linear-attention layers"
_CROSS = "an encoder-decoder or cross-attention model"
_SHARED = "layers that share keys, values or inputs"

UNSUPPORTED: dict[str, str] = {
    "arctic": "a dense MLP beside its experts",
    "jetmoe": "a mixture of attention heads",
    "longcat_flash": "two attentions a layer and experts that compute nothing",
    "qwen3_omni_moe": "a speech model beside its language model",
    **dict.fromkeys(
        ("deepseek_v32", "glm_moe_dsa"), "sparse attention to tokens that an indexer picks"
    ),
    **dict.fromkeys(("nllb_moe", "switch_transformers"), _CROSS),
    **dict.fromkeys(
        (
            "bamba",
            "falcon_h1",
            "falcon_mamba",
            "granitemoehybrid",
            "jamba",
            "kimi_linear",
            "lfm2",
            "lfm2_moe",
            "mamba",
            "mamba2",
            "minimax",
            "minimax_m1",
            "minimax_text_01",
            "nemotron_h",
            "qwen3_5",
            "qwen3_5_moe",
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
