"""A model in Megatron's arguments, and back.

Source: Megatron-LM megatron/training/arguments.py (`_add_network_size_args`, `_add_moe_args`,
`_add_mla_args`, `validate_args`), core 0.16.
"""

from __future__ import annotations

from typing import Any

from planner.launch.records import Argument
from simulator.workload.layer import Norm, QkNorm
from simulator.workload.model import ModelSpec, Position
from simulator.workload.model_parts import Experts

POSITIONS = {
    "rope": Position.ROPE,
    "learned_absolute": Position.LEARNED,
    "none": Position.NONE,
}
LATENT = {
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_head_dim": "qk_nope_head_dim",
    "qk_pos_emb_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
}
MODEL_ARGUMENTS = (
    Argument(name="num_layers", key="model.num_hidden_layers"),
    Argument(name="hidden_size", key="model.hidden_size"),
    Argument(name="ffn_hidden_size", key="model.intermediate_size"),
    Argument(name="num_attention_heads", key="model.num_attention_heads"),
    Argument(name="group_query_attention", key="model.num_key_value_heads"),
    Argument(name="num_query_groups", key="model.num_key_value_heads"),
    Argument(name="kv_channels", key="model.head_dim"),
    Argument(name="vocab_size", key="model.vocab_size"),
    Argument(
        name="padded_vocab_size",
        key="model.vocab_size",
        note="with job.make_vocab_size_divisible_by = 1, as it is padded already",
    ),
    Argument(name="tokenizer_type", key="model.vocab_size", note="GPT2BPETokenizer: 50257"),
    Argument(name="untie_embeddings_and_output_weights", key="model.tie_word_embeddings"),
    Argument(name="swiglu", key="model.gated_mlp"),
    Argument(name="squared_relu", key="model.activation"),
    Argument(name="disable_bias_linear", key="model.mlp_bias", note="and attention's biases"),
    Argument(name="add_qkv_bias", key="model.attention_bias"),
    Argument(name="normalization", key="model.norm"),
    Argument(name="qk_layernorm", key="model.qk_norm"),
    Argument(name="position_embedding_type", key="model.position"),
    Argument(name="use_rotary_position_embeddings", key="model.position"),
    Argument(name="max_position_embeddings", key="model.max_position_embeddings"),
    Argument(name="window_size", key="model.sliding_window"),
    Argument(name="window_attn_skip_freq", key="model.sliding_window_pattern"),
    Argument(name="no_rope_freq", key="model.no_rope_layers"),
    Argument(name="mtp_num_layers", key="model.num_nextn_predict_layers"),
    Argument(name="multi_latent_attention", key="model.mla"),
    *(Argument(name=name, key=f"model.mla.{key}") for name, key in LATENT.items()),
    Argument(name="num_experts", key="model.moe.num_experts"),
    Argument(name="moe_router_topk", key="model.moe.num_experts_per_tok"),
    Argument(name="moe_ffn_hidden_size", key="model.moe.moe_intermediate_size"),
    Argument(
        name="moe_shared_expert_intermediate_size", key="model.moe.shared_expert_intermediate_size"
    ),
    Argument(name="moe_shared_expert_gate", key="model.moe.shared_expert_gate"),
    Argument(name="moe_layer_freq", key="model.moe.dense_layers"),
    Argument(name="moe_router_num_groups", key="model.moe.n_group"),
    Argument(name="moe_router_group_topk", key="model.moe.topk_group"),
    Argument(name="moe_router_enable_expert_bias", key="model.moe.router_bias"),
)


def model_settings(model: ModelSpec, seq_length: int) -> dict[str, Any]:
    """Return what says a model to Megatron; what it has no word for is left out.

    Its positions are at least `seq_length`, as `validate_args` asks; rotary ones cost nothing.
    """
    positions = model.learned_positions or model.max_position_embeddings
    if model.position is not Position.LEARNED:
        positions = max(positions, seq_length)
    settings: dict[str, Any] = {
        "num_layers": model.num_hidden_layers,
        "hidden_size": model.hidden_size,
        "ffn_hidden_size": model.intermediate_size,
        "num_attention_heads": model.num_attention_heads,
        "vocab_size": model.vocab_size,
        "untie_embeddings_and_output_weights": not model.tie_word_embeddings,
        "swiglu": model.gated_mlp,
        "squared_relu": model.activation == "relu2",
        "disable_bias_linear": not model.mlp_bias,
        "add_qkv_bias": model.attention_bias and not model.mlp_bias,
        "normalization": "RMSNorm" if model.norm is Norm.RMSNORM else "LayerNorm",
        # Of latent attention it is the norms of the latents, which the model always has.
        "qk_layernorm": model.qk_norm is QkNorm.PER_HEAD or model.mla is not None,
        "position_embedding_type": {v: k for k, v in POSITIONS.items()}.get(model.position),
        "max_position_embeddings": positions,
        "mtp_num_layers": model.num_nextn_predict_layers or None,
    }
    return settings | _attention(model) | (_experts(model, model.moe) if model.moe else {})


def _attention(model: ModelSpec) -> dict[str, Any]:
    if model.mla is not None:
        widths = {name: getattr(model.mla, key) for name, key in LATENT.items()}
        return {"multi_latent_attention": True, **widths}
    grouped = model.num_key_value_heads != model.num_attention_heads
    window = model.sliding_window
    skipped = [int(layer in model.no_rope_layers) for layer in range(model.num_hidden_layers)]
    return {
        "kv_channels": model.head_dim,
        "group_query_attention": grouped,
        "num_query_groups": model.num_key_value_heads if grouped else None,
        "window_size": f"({window},0)" if window else None,
        "window_attn_skip_freq": model.sliding_window_pattern if window else None,
        "no_rope_freq": f"[{','.join(map(str, skipped))}]" if any(skipped) else None,
    }


def _experts(model: ModelSpec, moe: Experts) -> dict[str, Any]:
    sparse = [int(layer not in moe.dense_layers) for layer in range(model.num_hidden_layers)]
    groups = moe.n_group > 1
    return {
        "num_experts": moe.num_experts,
        "moe_router_topk": moe.num_experts_per_tok,
        "moe_ffn_hidden_size": moe.moe_intermediate_size,
        "moe_shared_expert_intermediate_size": moe.shared_expert_intermediate_size or None,
        "moe_shared_expert_gate": moe.shared_expert_gate,
        "moe_layer_freq": f"[{','.join(map(str, sparse))}]" if moe.dense_layers else None,
        "moe_router_num_groups": moe.n_group if groups else None,
        "moe_router_group_topk": moe.topk_group if groups else None,
        "moe_router_enable_expert_bias": moe.router_bias,
        # The bias is of sigmoid scores alone.
        "moe_router_score_function": "sigmoid" if moe.router_bias else None,
    }
