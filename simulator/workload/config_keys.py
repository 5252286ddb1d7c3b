"""The keys of a Hugging Face config: their names, their types, and which do not matter."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator

from simulator.files import FileRecord
from simulator.workload.model_parts import (
    MAX_EXPERTS,
    MAX_LAYERS,
    MAX_WIDTH,
    Heads,
    Layers,
    LayerType,
    Width,
)

ALIASES: dict[str, tuple[str, ...]] = {
    "hidden_size": ("n_embd", "n_embed", "d_model", "model_dim"),
    "num_hidden_layers": ("n_layer", "n_layers", "num_layers", "num_transformer_layers"),
    "num_attention_heads": ("n_head", "n_heads", "num_heads", "attention_heads"),
    "num_key_value_heads": ("n_head_kv", "num_kv_heads", "multi_query_group_num"),
    "intermediate_size": ("n_inner", "ffn_dim", "ffn_hidden_size"),
    "head_dim": ("kv_channels",),
    "vocab_size": ("padded_vocab_size",),
    "max_position_embeddings": (
        "n_positions",
        "max_seq_len",
        "max_sequence_length",
        "max_context_length",
        "n_ctx",
        "seq_length",
    ),
    "hidden_act": (
        "hidden_activation",
        "activation_function",
        "activation_fn_name",
        "activation",
    ),
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": (
        "num_experts_per_token",
        "experts_per_token",
        "moe_top_k",
        "moe_topk",
        "moe_k",
    ),
    "n_shared_experts": ("num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    "dbrx_attn_config": ("attn_config",),
    "dbrx_ffn_config": ("ffn_config",),
}
"""Commonest name -> what other architectures call the same."""
PREFERRED = ("hidden_activation", "padded_vocab_size", "n_embed")
"""Names that win over the commonest where a file has both (Gemma, ChatGLM, BLOOM)."""
MAY_DIFFER = ("max_position_embeddings", "hidden_act", "vocab_size")
"""Names whose spellings may stand side by side with different values."""

Flag = bool | None
Size = Width | None
Index = Annotated[int, Field(ge=0, le=MAX_LAYERS)]
Name = Annotated[str, Field(min_length=1, max_length=40)]
Count = Annotated[int, Field(ge=0, le=MAX_EXPERTS)]
Breadth = Annotated[int, Field(ge=0, le=MAX_WIDTH)]
"""A width that may be absent, which some files write as 0."""
Indices = tuple[Index, ...] | None


class ConfigKeys(FileRecord):
    """Every key that some architecture reads, with its type; other keys are not looked at."""

    model_config = ConfigDict(extra="ignore")

    hidden_size: Size = None
    num_hidden_layers: Layers | None = None
    num_attention_heads: Heads | None = None
    num_key_value_heads: Heads | None = None
    head_dim: Size = None
    intermediate_size: Size = None
    vocab_size: Size = None
    max_position_embeddings: Size = None
    tie_word_embeddings: Flag = None
    hidden_act: Name | None = None
    attention_bias: Flag = None
    attention_out_bias: Flag = None
    mlp_bias: Flag = None
    qkv_bias: Flag = None
    use_qkv_bias: Flag = None
    use_bias: Flag = None
    bias: Flag = None
    no_bias: Flag = None
    enable_bias: Flag = None
    add_bias_linear: Flag = None
    add_qkv_bias: Flag = None
    layer_norm_elementwise_affine: Flag = None
    do_layer_norm_before: Flag = None
    remove_final_layer_norm: Flag = Field(default=None, alias="_remove_final_layer_norm")
    rmsnorm: Flag = None
    post_layer_norm: Flag = None
    norm_type: Name | None = None
    use_qk_norm: Flag = None
    qk_layernorm: Flag = None
    normalize_qk_projections: Flag = None
    multi_query: Flag = None
    multi_query_attention: Flag = None
    new_decoder_architecture: Flag = None
    parallel_attn: Flag = None
    use_parallel_residual: Flag = None
    num_ln_in_parallel_attn: Annotated[int, Field(ge=1, le=2)] | None = None
    alibi: Flag = None
    learned_pos_emb: Flag = None
    sliding_window: Size = None
    sliding_window_pattern: Layers | Annotated[str, Field(pattern="^[LG]{1,64}$")] | None = None
    layer_types: tuple[LayerType, ...] | None = None
    use_sliding_window: Flag = None
    max_window_layers: Index | None = None
    no_rope_layers: tuple[Annotated[int, Field(ge=0, le=1)], ...] | None = None
    no_rope_layer_interval: Layers | None = None
    window_size: Size = None
    attention_types: tuple[tuple[tuple[Name, ...], Index], ...] | None = None
    attention_layers: Any = None
    word_embed_proj_dim: Size = None
    expansion_ratio: Annotated[int, Field(ge=1, le=1024)] | None = None
    attn_config: AttnConfig | None = None
    ffn_config: FfnConfig | None = None
    block_configs: Any = None
    num_key_value_heads_per_layer: tuple[Heads, ...] | None = None
    num_query_heads: Any = None
    num_kv_heads: Any = None
    ffn_multipliers: Any = None
    ffn_with_glu: Flag = None
    share_input_output_layers: Flag = None
    ffn_dim_divisor: Size = None
    num_experts: Count | tuple[Count, ...] | None = None
    num_experts_per_tok: Count | tuple[Count, ...] | None = None
    moe_intermediate_size: Breadth | tuple[Breadth, ...] | None = None
    n_shared_experts: Count | tuple[Count, ...] | None = None
    shared_expert_intermediate_size: Breadth | None = None
    shared_intermediate_size: Breadth | None = None
    n_group: Count | None = None
    topk_group: Count | None = None
    topk_method: Name | None = None
    first_k_dense_replace: Index | None = None
    moe_layer_freq: Layers | None = None
    decoder_sparse_step: Layers | None = None
    interleave_moe_layer_step: Layers | None = None
    mlp_only_layers: Indices = None
    moe_layers: Indices = None
    mlp_layer_types: tuple[Literal["dense", "sparse"], ...] | None = None
    moe_layer_start_index: Index | None = None
    moe_layer_end_index: Annotated[int, Field(ge=-1, le=MAX_LAYERS)] | None = None
    moe_layer_interval: Layers | None = None
    intermediate_size_mlp: Size = None
    num_nextn_predict_layers: Annotated[int, Field(ge=0, le=64)] | None = None
    use_mla: Flag = None
    q_lora_rank: Breadth | None = None
    kv_lora_rank: Breadth | None = None
    qk_nope_head_dim: Breadth | None = None
    qk_rope_head_dim: Breadth | None = None
    v_head_dim: Breadth | None = None
    attention_chunk_size: Size = None
    lm_head_bias: Flag = None
    attn_type_list: tuple[Index, ...] | None = None
    use_routing_bias: Flag = None
    dbrx_attn_config: DbrxAttnConfig | None = None
    dbrx_ffn_config: DbrxFfnConfig | None = None


class AttnType(StrEnum):
    """How many key and value heads MPT's attention has."""

    MULTIHEAD = "multihead_attention"
    MULTIQUERY = "multiquery_attention"
    GROUPED = "grouped_query_attention"


class AttnConfig(FileRecord):
    """What MPT's `attn_config` says that matters here."""

    model_config = ConfigDict(extra="ignore")

    alibi: bool = True
    rope: bool = False
    attn_type: AttnType = AttnType.MULTIHEAD
    kv_n_heads: Heads | None = None
    sliding_window_size: Annotated[int, Field(ge=-1)] = -1

    @model_validator(mode="after")
    def _groups_are_given(self) -> AttnConfig:
        if self.attn_type is AttnType.GROUPED and self.kv_n_heads is None:
            raise ValueError("kv_n_heads is required where attn_type is grouped_query_attention")
        return self


class FfnConfig(FileRecord):
    """What MPT's `ffn_config` says that matters here."""

    model_config = ConfigDict(extra="ignore")

    ffn_type: Annotated[str, Field(pattern="^(mptmlp|mptglu)$")] = "mptmlp"


class DbrxAttnConfig(FileRecord):
    """What DBRX's `attn_config` says that matters here."""

    model_config = ConfigDict(extra="ignore")

    kv_n_heads: Heads = 1


class ActivationConfig(FileRecord):
    """What DBRX's `ffn_act_fn` says that matters here."""

    model_config = ConfigDict(extra="ignore")

    name: Name = "silu"


class DbrxFfnConfig(FileRecord):
    """What DBRX's `ffn_config` says; sizes are not guessed."""

    model_config = ConfigDict(extra="ignore")

    ffn_hidden_size: Width
    moe_num_experts: Annotated[int, Field(ge=1, le=MAX_EXPERTS)]
    moe_top_k: Annotated[int, Field(ge=1, le=MAX_EXPERTS)]
    ffn_act_fn: ActivationConfig | None = None
