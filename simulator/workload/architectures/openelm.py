"""OpenELM: heads and MLP widths that grow from layer to layer."""

from __future__ import annotations

from simulator.files import FileRecord, parse_record
from simulator.workload.architectures.entry import (
    LLAMA_BLOCK,
    Architecture,
    Config,
    Fields,
    require_length,
)
from simulator.workload.architectures.layerwise import common_and_overrides
from simulator.workload.layer import QkNorm
from simulator.workload.model_parts import Heads

_SHRINK_LIMIT = 0.9


class _Elm(FileRecord):
    num_query_heads: tuple[Heads, ...]
    num_kv_heads: tuple[Heads, ...]
    ffn_multipliers: tuple[float, ...]


def _openelm(config: Config) -> Fields:
    """Return heads and MLP widths layer by layer. Source: configuration_openelm.py."""
    lists = {key: config.get(key) for key in _Elm.model_fields if key in config}
    elm = parse_record(_Elm, lists, "")
    for key in _Elm.model_fields:
        require_length(key, len(getattr(elm, key)), config["num_hidden_layers"])
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
        **common_and_overrides(rows, config),
    }


def _divisible(size: float, divisor: int) -> int:
    """Return the multiple of `divisor` next to `size`, never more than 10 % below it."""
    rounded = max(divisor, int(size + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < _SHRINK_LIMIT * size else rounded


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


ENTRIES = (OPENELM,)
