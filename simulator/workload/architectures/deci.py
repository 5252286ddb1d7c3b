"""DeciLM and Nemotron Super/Ultra: layers found by architecture search, each with its own sizes."""

from __future__ import annotations

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
    require_length,
)
from simulator.workload.architectures.layerwise import common_and_overrides
from simulator.workload.model_parts import BlockKind, Heads, Width

DECI_MULTIPLE = 256
"""Intermediate sizes of DeciLM are rounded up to a multiple of this (modeling_decilm.py)."""


MAX_MULTIPLIER = 1024.0


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


def _deci(config: Config) -> Fields:
    """Return the layers of `block_configs`, or of `num_key_value_heads_per_layer` (DeciLM 7B)."""
    if config.get("block_configs") is None:
        return {**biases(config), **_listed_groups(config)}
    blocks = parse_record(_Blocks, {"block_configs": config["block_configs"]}, "").block_configs
    require_length("block_configs", len(blocks), config["num_hidden_layers"])
    _refuse_unmodelled(blocks, config["hidden_act"])
    rows = [_deci_layer(block, index, config) for index, block in enumerate(blocks)]
    return {**biases(config), **common_and_overrides(rows, config)}


def _listed_groups(config: Config) -> Fields:
    groups = config.get("num_key_value_heads_per_layer")
    if groups is None:
        return {}
    require_length("num_key_value_heads_per_layer", len(groups), config["num_hidden_layers"])
    return common_and_overrides([{"num_key_value_heads": heads} for heads in groups], config)


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


ENTRIES = (DECI,)
