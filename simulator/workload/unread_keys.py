"""What to do with a config's keys that no architecture entry reads: ignore, note or refuse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.errors import Problem

_SHOWN = 60

HARMLESS = re.compile(
    r"""
    _.*|.*(dropout|drop|pdrop|layerdrop|dropout_prob)|.*_token_ids?|.*_token_index|.*_token
    |.*_eps|.*_epsilon|norm_epsilon|.*initializer_range|init_.*|.*_init_.*|.*_std|.*(rope|rotary).*
    |.*(dtype|version).*|architectures|model_type|auto_map|use_cache|use_cache_.*|return_.*|output_.*
    |id2label|label2id|num_labels|problem_type|finetuning_task|task_specific_params|prefix|title
    |summary_.*|classifier_dropout|pruned_heads|tokenizer_class|tokenizer_name|name_or_path
    |chunk_size_feed_forward|min_length|max_length|max_new_tokens|do_sample|early_stopping
    |num_beams|num_beam_groups|diversity_penalty|temperature|top_k|top_p|typical_p|.*_penalty
    |no_repeat_ngram_size|encoder_no_repeat_ngram_size|bad_words_ids|num_return_sequences
    |forced_.*|remove_invalid_values|exponential_decay_length_penalty|suppress_tokens
    |begin_suppress_tokens|torchscript|tf_legacy_loss|use_bfloat16|bf16|fp16|fp32|quantization
    |pretraining_tp|gradient_checkpointing|is_decoder|attn_implementation|attn_impl
    |use_flash_attn|use_flash_attention.*|flash_attn.*|use_dynamic_ntk|use_logn_attn|logn_.*
    |softmax_in_fp32|.*softmax_in_fp32|scale_attn_.*|scale_attention_.*|reorder_and_upcast_attn
    |attention_softmax.*|original_max_position_embeddings|max_position_embeddings
    |partial_rotary_factor|.*multiplier|logits?_scal.*|residual_scale|query_pre_attn_scalar
    |apply_residual_connection_post_layernorm|apply_query_key_layer_scaling|attn_uses_sequence_id
    |slow_but_exact|pre_layer_norm|original_rope|alibi_bias_max|embedding_fraction|verbose
    |max_sequence_length|seq_length|n_positions|n_ctx|skip_bias_add|masked_softmax_fusion
    |bias_dropout_fusion|unk_token_id|offset_alibi|seed|safe_serialization|unsloth.*
    |special_dtypes|transformers.*|mup.*scale|emb_pdrop|use_mrope|fc_type|norm_topk_prob
    |router_aux_loss_coef|output_router_logits|attention_probs_dropout_prob|num_logits_to_keep
    |attn_pdrop|softmax_scale|prefix_lm|first_.*_fusion|onnx_safe|.*_ckpt.*
    |use_bidirectional_attention|cache_implementation
    |rescale_every|pad_vocab_size_multiple|model_max_length
    |qkv_multipliers|num_gqa_groups|normalization_layer_name|scale_embedding|attention_multiplier
    """,
    re.VERBOSE,
)
"""Names that change neither shapes nor the amount of computing."""

REFUSED: dict[str, re.Pattern[str]] = {
    "a mixture of experts": re.compile(
        r".*(expert|moe|router).*|decoder_sparse_step|mlp_only_layers|first_k_dense_replace"
        r"|n_group|topk_group|mlp_layer_types"
    ),
    "multi-head latent attention": re.compile(
        r"(kv|q|o)_lora_rank|qk_(rope|nope)_head_dim|v_head_dim|use_mla"
    ),
    "state-space, convolution or linear-attention layers": re.compile(
        r".*(mamba|ssm|rwkv|linear_attn|recurrent|lru).*|(.*_)?conv(_.*)?|d_conv|d_state|state_size"
        r"|linear_(num|key|value|conv).*|full_attention_interval|attn_layer_(period|offset|indices)"
        r"|block_types|hybrid_.*|layers_block_type"
    ),
    "an encoder-decoder or cross attention": re.compile(
        r"is_encoder_decoder|add_cross_attention|cross_attention.*|encoder_.*|decoder_(layers|ffn.*)"
    ),
    "multi-token prediction": re.compile(r"num_nextn_predict_layers|(.*_)?mtp(_.*)?"),
    "layers that share keys, values or inputs": re.compile(
        r".*(altup|laurel|per_layer_input|kv_shared|shared_kv|cross_layer|reuse_kv).*|use_cla"
    ),
    "norms of queries and keys with biases": re.compile(r"qk_(layernorm|ln|gn)"),
}
"""What is not modelled yet -> the keys that ask for it."""

ELSEWHERE = ("a mixture of experts", "multi-head latent attention", "multi-token prediction")
"""Of these, what is modelled in architectures that read the keys."""

SUSPECT = re.compile(
    r"(.*_)?(size|sizes|dim|dims|rank|ranks|heads?|layers?|window|windows|bias|norm|norms|mlp|attn"
    r"|attention|ffn|feed_forward|sha(re|red|ring)|encoder|decoder|vocab|interval|ratio|groups?"
    r"|blocks?|kernel|gate|gated|parallel|width|depth|sparsity|sparse|every|sink|sinks)(_.*)?"
    r"|n_.*|num_.*|d_.*|use_.*norm.*"
)
"""Parts of a name that say it may change shapes or computing."""

SMALL: dict[str, re.Pattern[str]] = {
    "clipping and soft-capping are not timed": re.compile(r"clip_qkv|.*softcap.*"),
    "the model is taken unquantized": re.compile(r"quantization_config|compression_config"),
    "vision and audio towers are left out": re.compile(
        r".*(vision|image|video|audio|visual|projector|speech|multimodal|vit_).*|mm_.*"
        r"|spatial_merge_size|temporal_patch_size"
    ),
}
"""What is left out with a note -> the keys that ask for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """What the unread keys of a config come to."""

    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def judge_unread(
    config: Mapping[str, Any],
    known: frozenset[str],
    where: str,
    *,
    prefix: str = "",
    left_out: frozenset[str] = frozenset(),
) -> Unread:
    """Return what to refuse and what to tell of the keys of `config` that nothing reads.

    A key that is null, false, 0 or empty asks for nothing. `known` are keys that some other
    architecture reads: the library ignores them in this one, which is noted, as it is for those
    in `left_out`.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    for name, value in config.items():
        if _asks_nothing(value):
            continue
        key = prefix + name
        unmodelled, small = _reason(name, REFUSED), _reason(name, SMALL)
        if name in left_out:
            notes.append(f"{key} = {_shown(value)} is left out, as the library does")
        elif unmodelled:
            problems.append(_refusal(where, key, value, _rule(unmodelled)))
        elif small:
            notes.append(f"{key}: {small}")
        elif HARMLESS.fullmatch(name):
            continue
        elif name in known:
            notes.append(f"{key} = {_shown(value)} is ignored: this architecture does not read it")
        elif SUSPECT.fullmatch(name):
            rule = "is not understood, and by its name it may change what is computed"
            problems.append(_refusal(where, key, value, rule))
        else:
            notes.append(f"unknown key {key} = {_shown(value)} is ignored")
    return Unread(problems=tuple(problems), notes=tuple(notes))


def _reason(key: str, table: Mapping[str, re.Pattern[str]]) -> str:
    return next((reason for reason, keys in table.items() if keys.fullmatch(key)), "")


def _rule(reason: str) -> str:
    if reason in ELSEWHERE:
        return f"belongs to {reason}, which this architecture is not known to have in this form"
    return f"asks for {reason}, which is not modelled yet"


def _asks_nothing(value: object) -> bool:
    return value is None or value is False or value in (0, "", [], {})


def _refusal(where: str, key: str, value: object, rule: str) -> Problem:
    fix = "remove the key if the model does not use it, or describe the model in a TOML file"
    return Problem(where=where, key=key, found=_shown(value), rule=rule, fix=fix)


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        return "a value too long to show"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
