"""Models whose layers differ in size: DeciLM and Nemotron (architecture search), OpenELM."""

from __future__ import annotations

from collections import Counter
from typing import Any

from pydantic import Field

from simulator.errors import InputError, Problem, UnsupportedError
from simulator.files import FileRecord, parse_record
from simulator.workload.architectures.entry import (
    LLAMA_BLOCK,
    UNTIED,
    Architecture,
    Config,
    Fields,
    biases,
)
from simulator.workload.layer import QkNorm
from simulator.workload.model_parts import BlockKind, Heads, Width

DECI_MULTIPLE = 256
"""Intermediate sizes of DeciLM are rounded up to a multiple of this (modeling_decilm.py)."""
MAX_MULTIPLIER = 1024.0
_SHRINK_LIMIT = 0.9
_OVERRIDDEN = ("num_attention_heads", "num_key_value_heads", "intermediate_size")


class _Attention(FileRecord):
    """The attention of one block."""

    n_heads_in_group: Heads | None = None
    num_key_value_heads: Heads | None = None
    no_op: bool = False
    replace_with_linear: bool = False
    window_length: int | None = None
    num_sink_tokens: int | None = None
    unshifted_sink: bool = False
    use_prefill_window_in_sink_attention: bool = False
    sparsify: Any = None
    mamba: Any = None
    llama4: Any = None


class _Ffn(FileRecord):
    """The MLP of one block."""

    ffn_mult: float | None = Field(default=None, gt=0, le=MAX_MULTIPLIER)
    intermediate_size: Width | None = None
    no_op: bool = False
    replace_with_linear: bool = False
    sparsify: Any = None
    moe: Any = None
    hidden_act: str | None = None
    gated: bool = True


class _Block(FileRecord):
    """One layer."""

    attention: _Attention
    ffn: _Ffn
    parallel_blocks: Any = None


class _Blocks(FileRecord):
    block_configs: tuple[_Block, ...]


class _Elm(FileRecord):
    num_query_heads: tuple[Heads, ...]
    num_kv_heads: tuple[Heads, ...]
    ffn_multipliers: tuple[float, ...]


def _deci(config: Config) -> Fields:
    """Return the layers of `block_configs`, or of `num_key_value_heads_per_layer` (DeciLM 7B)."""
    if config.get("block_configs") is None:
        return {**biases(config), **_listed_groups(config)}
    blocks = parse_record(_Blocks, {"block_configs": config["block_configs"]}, "").block_configs
    _require_length("block_configs", len(blocks), config["num_hidden_layers"])
    _refuse_unmodelled(blocks, config["hidden_act"])
    rows = [_deci_layer(block, index, config) for index, block in enumerate(blocks)]
    return {**biases(config), **_per_layer(rows, config)}


def _listed_groups(config: Config) -> Fields:
    groups = config.get("num_key_value_heads_per_layer")
    if groups is None:
        return {}
    _require_length("num_key_value_heads_per_layer", len(groups), config["num_hidden_layers"])
    return _per_layer([{"num_key_value_heads": heads} for heads in groups], config)


def _deci_layer(block: _Block, index: int, config: Config) -> Fields:
    attention, ffn, row = block.attention, block.ffn, Fields()
    row["attention"] = _kind(attention.no_op, attention.replace_with_linear)
    row["mlp"] = _kind(ffn.no_op, ffn.replace_with_linear)
    if row["attention"] is BlockKind.NORMAL:
        row["num_key_value_heads"] = _deci_groups(attention, index, config)
    if row["mlp"] is BlockKind.NORMAL:
        row["intermediate_size"] = _deci_width(ffn, index, config)
    return row


def _kind(absent: bool, linear: bool) -> BlockKind:
    if absent:
        return BlockKind.NONE
    return BlockKind.LINEAR if linear else BlockKind.NORMAL


def _deci_groups(attention: _Attention, index: int, config: Config) -> int:
    heads, size = config["num_attention_heads"], attention.n_heads_in_group
    if attention.num_key_value_heads is not None:
        return attention.num_key_value_heads
    if size is None or heads % size:
        raise InputError(
            Problem(
                key=f"block_configs.{index}.attention.n_heads_in_group",
                found=str(size),
                rule=f"must divide num_attention_heads {heads} where attention is not no_op",
                fix="give the number of query heads that share one key and value head",
            )
        )
    return int(heads // size)


def _deci_width(ffn: _Ffn, index: int, config: Config) -> int:
    """Return 2/3 of ffn_mult hidden sizes, rounded up to a multiple of 256."""
    if ffn.intermediate_size is not None:
        return ffn.intermediate_size
    if ffn.ffn_mult is None:
        raise InputError(
            Problem(
                key=f"block_configs.{index}.ffn.ffn_mult",
                rule="this key is required where the MLP is not no_op",
                fix="give ffn_mult or intermediate_size",
            )
        )
    size = int(2 * ffn.ffn_mult * config["hidden_size"] / 3)
    return max(-(-size // DECI_MULTIPLE), 1) * DECI_MULTIPLE


def _refuse_unmodelled(blocks: tuple[_Block, ...], activation: str) -> None:
    problems = [
        Problem(
            key=f"block_configs.{index}.{key}",
            found=repr(value)[:60],
            rule="changes what the layer computes and is not modelled yet",
            fix="use a model without it",
        )
        for index, block in enumerate(blocks)
        for key, value in _unmodelled(block, activation).items()
        if value
    ]
    if problems:
        raise UnsupportedError(*problems)


def _unmodelled(block: _Block, activation: str) -> dict[str, Any]:
    attention, ffn = block.attention, block.ffn
    other = ffn.hidden_act if ffn.hidden_act not in (None, activation) else None
    return {
        "attention.window_length": attention.window_length,
        "attention.num_sink_tokens": attention.num_sink_tokens,
        "attention.unshifted_sink": attention.unshifted_sink,
        "attention.sparsify": attention.sparsify,
        "attention.mamba": attention.mamba,
        "attention.llama4": attention.llama4,
        "ffn.sparsify": ffn.sparsify,
        "ffn.moe": ffn.moe,
        "ffn.hidden_act": other,
        "ffn.gated = false": not ffn.gated,
        "parallel_blocks": block.parallel_blocks,
    }


def _openelm(config: Config) -> Fields:
    """Return heads and MLP widths layer by layer. Source: configuration_openelm.py."""
    lists = {key: config.get(key) for key in _Elm.model_fields if key in config}
    elm = parse_record(_Elm, lists, "")
    for key in _Elm.model_fields:
        _require_length(key, len(getattr(elm, key)), config["num_hidden_layers"])
    rows = [
        {
            "num_attention_heads": heads,
            "num_key_value_heads": groups,
            "intermediate_size": _divisible(
                multiplier * config["hidden_size"], config["ffn_dim_divisor"]
            ),
        }
        for heads, groups, multiplier in zip(
            elm.num_query_heads, elm.num_kv_heads, elm.ffn_multipliers, strict=True
        )
    ]
    return {
        "gated_mlp": config["ffn_with_glu"],
        "qk_norm": QkNorm.PER_HEAD if config["normalize_qk_projections"] else QkNorm.NONE,
        "tie_word_embeddings": config["share_input_output_layers"],
        **_per_layer(rows, config),
    }


def _divisible(size: float, divisor: int) -> int:
    """Return the multiple of `divisor` next to `size`, never more than 10 % below it."""
    rounded = max(divisor, int(size + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < _SHRINK_LIMIT * size else rounded


def _require_length(key: str, found: int, layers: int) -> None:
    if found != layers:
        raise InputError(
            Problem(
                key=key,
                found=f"{found} entries",
                rule=f"must have one entry a layer, num_hidden_layers {layers}",
                fix=f"use num_hidden_layers {found} or the missing entries",
            )
        )


def _per_layer(rows: list[Fields], config: Config) -> Fields:
    """Return the commonest sizes as the model's own, and what differs as overrides."""
    common = {}
    for key in _OVERRIDDEN:
        values = Counter(row[key] for row in rows if key in row)
        if values:
            common[key] = values.most_common(1)[0][0]
    common.setdefault("num_key_value_heads", config.get("num_attention_heads"))
    common.setdefault("intermediate_size", config.get("intermediate_size") or 1)
    different: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for index, row in enumerate(rows):
        changed = {key: value for key, value in row.items() if value != common.get(key, "normal")}
        if changed:
            different.setdefault(tuple(changed.items()), []).append(index)
    overrides = [{"layers": layers, **dict(row)} for row, layers in different.items()]
    return {**common, "layer_overrides": overrides}


DECI = Architecture(
    names=("nemotron-nas", "deci", "decilm"),
    fixed=LLAMA_BLOCK,
    defaults={
        **UNTIED,
        "hidden_act": "silu",
        "max_position_embeddings": 2048,
        "intermediate_size": None,
    },
    keys=frozenset(
        {"attention_bias", "mlp_bias", "block_configs", "num_key_value_heads_per_layer"}
    ),
    derive=_deci,
)
OPENELM = Architecture(
    names=("openelm",),
    fixed=LLAMA_BLOCK,
    defaults={
        "hidden_act": "swish",
        "max_position_embeddings": 2048,
        "num_attention_heads": None,
        "intermediate_size": None,
        "tie_word_embeddings": None,
        "ffn_with_glu": True,
        "normalize_qk_projections": True,
        "share_input_output_layers": True,
        "ffn_dim_divisor": 256,
    },
    keys=frozenset(_Elm.model_fields)
    | {"ffn_with_glu", "normalize_qk_projections", "share_input_output_layers", "ffn_dim_divisor"},
    derive=_openelm,
)
ENTRIES = (DECI, OPENELM)
