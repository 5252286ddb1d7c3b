"""Reads a model from Megatron's arguments.

Source: as `planner.launch.megatron_model`.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from planner.launch.keys import Keys
from planner.launch.megatron_model import LATENT, POSITIONS
from simulator.workload.layer import Norm
from simulator.workload.model import Position
from simulator.workload.model_parts import MAX_LAYERS

_NORMS = {"LayerNorm": Norm.LAYERNORM, "RMSNorm": Norm.RMSNORM}
_GPT2_VOCABULARY = 50257
"""Tokens of GPT-2's vocabulary file (Radford et al. 2019), which GPT2BPETokenizer reads."""
_SWIGLU_MULTIPLE = 64
"""Megatron-LM's default width with --swiglu is 4 h x 2/3, down to a multiple of it."""
_LATENT_DEFAULTS = {
    "kv_lora_rank": 32,
    "qk_head_dim": 128,
    "qk_pos_emb_head_dim": 64,
    "v_head_dim": 128,
}
"""Of `_add_mla_args`."""
_PATTERN = re.compile(r"[\[\]()\d,+* ]+")


def read_model(keys: Keys) -> tuple[dict[str, Any], bool]:
    """Return the fields of a model, and whether its vocabulary is padded already."""
    keys.need("num_layers", "hidden_size", "num_attention_heads")
    layers = keys.whole("num_layers", 1)
    hidden = keys.whole("hidden_size", 1)
    gated = keys.flag("swiglu")
    squared = keys.flag("squared_relu")
    position = keys.word("position_embedding_type", POSITIONS, Position.LEARNED)
    if keys.flag("use_rotary_position_embeddings"):
        position = Position.ROPE
    length = keys.whole("max_position_embeddings", keys.values.get("seq_length", 1))
    vocabulary, padded = _vocabulary(keys)
    fields = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": keys.whole("ffn_hidden_size", _default_width(hidden, gated=gated)),
        "vocab_size": vocabulary,
        "tie_word_embeddings": not keys.flag("untie_embeddings_and_output_weights"),
        "gated_mlp": gated,
        "activation": "relu2" if squared else "silu" if gated else "gelu",
        "position": position.value,
        "max_position_embeddings": int(length),
        "num_nextn_predict_layers": keys.whole("mtp_num_layers", 0, least=0),
        **_read_norms_and_biases(keys, latent=keys.flag("multi_latent_attention")),
        **_read_attention(keys, layers, hidden),
    }
    if keys.given("num_experts"):
        fields["moe"] = _read_experts(keys, layers, fields["intermediate_size"])
    return {key: value for key, value in fields.items() if value is not None}, padded


def _default_width(hidden: int, *, gated: bool) -> int:
    if not gated:
        return 4 * hidden
    return int(4 * hidden * 2 / 3 / _SWIGLU_MULTIPLE) * _SWIGLU_MULTIPLE


def _vocabulary(keys: Keys) -> tuple[int, bool]:
    if keys.given("padded_vocab_size"):
        keys.take("vocab_size")
        return keys.whole("padded_vocab_size", 1), True
    if keys.given("vocab_size"):
        return keys.whole("vocab_size", 1), False
    if keys.take("tokenizer_type") in (None, "GPT2BPETokenizer"):
        keys.notes.append(f"no vocab_size: {_GPT2_VOCABULARY}, that of GPT2BPETokenizer")
        return _GPT2_VOCABULARY, False
    keys.complain(
        "vocab_size",
        "is missing, and only the tokenizer's files say it",
        found=f"tokenizer {keys.values['tokenizer_type']}",
        fix="--set vocab_size=N",
    )
    return 1, False


def _read_norms_and_biases(keys: Keys, *, latent: bool) -> dict[str, Any]:
    norm = keys.word("normalization", _NORMS, Norm.LAYERNORM)
    biased = not keys.flag("disable_bias_linear")
    per_head = keys.flag("qk_layernorm")
    if latent and not per_head:
        keys.notes.append("no qk_layernorm: the forecast has the norms of the latents all the same")
    return {
        "norm": norm.value,
        "norm_bias": norm is Norm.LAYERNORM,
        # Of latent attention the flag is about the latents' norms (get_gpt_layer_specs).
        "qk_norm": "per-head" if per_head and not latent else "none",
        "mlp_bias": biased,
        "attention_bias": keys.flag("add_qkv_bias") or biased,
        "attention_output_bias": biased,
    }


def _read_attention(keys: Keys, layers: int, hidden: int) -> dict[str, Any]:
    heads = keys.whole("num_attention_heads", 1)
    if keys.flag("multi_latent_attention"):
        widths = {key: keys.whole(name, _LATENT_DEFAULTS.get(name)) for name, key in LATENT.items()}
        known = {key: value for key, value in widths.items() if value is not None}
        for name in ("kv_channels", "group_query_attention", "num_query_groups"):
            keys.take(name)
        return {"num_attention_heads": heads, "mla": known}
    groups = keys.whole("num_query_groups")
    grouped = keys.flag("group_query_attention")
    window = keys.take("window_size")
    skipped = _pattern(keys, "no_rope_freq", layers)
    size = int(re.findall(r"\d+", str(window))[0]) if re.search(r"\d", str(window)) else None
    return {
        "num_attention_heads": heads,
        # --num-query-groups without --group-query-attention has no effect; its default is 1.
        "num_key_value_heads": (groups or 1) if grouped else heads,
        "head_dim": keys.whole("kv_channels", max(hidden // heads, 1)),
        "sliding_window": size,
        "sliding_window_pattern": keys.whole("window_attn_skip_freq"),
        "no_rope_layers": [n for n, skip in enumerate(skipped or ()) if skip],
    }


def _read_experts(keys: Keys, layers: int, width: int) -> dict[str, Any]:
    sparse = _pattern(keys, "moe_layer_freq", layers)
    keys.take("moe_router_score_function")
    return {
        "num_experts": keys.whole("num_experts", 1),
        "num_experts_per_tok": keys.whole("moe_router_topk", 2),
        "moe_intermediate_size": keys.whole("moe_ffn_hidden_size", width),
        "shared_expert_intermediate_size": keys.whole("moe_shared_expert_intermediate_size", 0, 0),
        "shared_expert_gate": keys.flag("moe_shared_expert_gate"),
        "router_bias": keys.flag("moe_router_enable_expert_bias"),
        "n_group": keys.whole("moe_router_num_groups", 1),
        "topk_group": keys.whole("moe_router_group_topk", 1),
        "dense_layers": [n for n, wanted in enumerate(sparse or ()) if not wanted],
    }


def _pattern(keys: Keys, name: str, layers: int) -> list[int] | None:
    """Return 0 or 1 for each layer: "N" is every N-th, "([0]*3+[1]*58)" is a Python list."""
    value = keys.take(name)
    if value is None:
        return None
    text = str(value).strip("\"' ")
    if text.isdigit():
        every = int(text)
        hit = 0 if name == "moe_layer_freq" else every - 1
        return [int(every > 0 and n % every == hit) for n in range(layers)]
    found = _listed(text) if _PATTERN.fullmatch(text) else None
    if found is None or len(found) != layers:
        rule = f"must be a number, or a list of 0 and 1 for each of the {layers} layers"
        keys.wrong(name, rule)
        return None
    return found


def _listed(text: str) -> list[int] | None:
    try:
        found = _evaluate(ast.parse(text, mode="eval").body)
    except (SyntaxError, TypeError, ValueError, MemoryError):
        return None
    return found if isinstance(found, list) else None


def _evaluate(node: ast.expr) -> Any:
    """Return the value of a list of numbers built with + and *."""
    match node:
        case ast.Constant(value=int()):
            return node.value
        case ast.List(elts=items):
            return [_evaluate(item) for item in items]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _evaluate(left) + _evaluate(right)
        case ast.BinOp(left=left, op=ast.Mult(), right=ast.Constant(value=int(times))):
            if times > MAX_LAYERS:
                raise ValueError("too long")
            return _evaluate(left) * times
        case _:
            raise ValueError("not a list of numbers")
