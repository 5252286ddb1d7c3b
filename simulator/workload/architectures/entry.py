"""What an architecture's entry says, and what most entries share.

Library defaults are those of transformers 4.57 (`models/<name>/configuration_<name>.py`), or of
the configuration file that ships beside a checkpoint with its own code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from simulator.errors import InputError, Problem
from simulator.workload.model_parts import LayerType, Position

Config: TypeAlias = Mapping[str, Any]
"""A config's checked values by Hugging Face's commonest name, library defaults filled in."""
Fields: TypeAlias = dict[str, Any]
"""Values of `ModelSpec` fields."""


def no_fields(_: Config) -> Fields:
    """Return nothing to add."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """One architecture: which spec fields it fixes, and how it reads its keys."""

    names: tuple[str, ...]
    """Values of `model_type`."""
    fixed: Fields
    """Spec fields that are the same for every model of this architecture."""
    defaults: Config = field(default_factory=dict)
    """What the library assumes for keys that a config leaves out."""
    sizes: Config = field(default_factory=dict)
    """Library defaults of sizes; used, and noted, only inside a nested `text_config`."""
    required: tuple[str, ...] = ()
    """Further sizes that the library must not guess."""
    keys: frozenset[str] = frozenset()
    """Further keys that `derive` reads."""
    stated: Config = field(default_factory=dict)
    """Keys that only state what is fixed here, and the one value of each that agrees with it."""
    ignored: frozenset[str] = frozenset()
    """Keys that the library stores for this architecture and never reads, or that change neither
    shapes nor the amount of computing."""
    left_out: frozenset[str] = frozenset()
    """Keys of published configs that ask for what the library leaves out; each is noted."""
    derive: Callable[[Config], Fields] = no_fields
    """Returns the spec fields that depend on the config."""


LLAMA_BLOCK: Fields = {
    "norm": "rmsnorm",
    "gated_mlp": True,
    "position": Position.ROPE,
}
GPT_BLOCK: Fields = {
    "norm": "layernorm",
    "norm_bias": True,
    "gated_mlp": False,
}
ALL_BIASES: Fields = {"attention_bias": True, "attention_output_bias": True, "mlp_bias": True}
TIED: Fields = {"tie_word_embeddings": True}
UNTIED: Fields = {"tie_word_embeddings": False}


def biases(config: Config) -> Fields:
    """Return the biases that `attention_bias` (all four projections) and `mlp_bias` ask for."""
    attention = config.get("attention_bias", False)
    return {
        "attention_bias": attention,
        "attention_output_bias": attention,
        "mlp_bias": config.get("mlp_bias", False),
    }


def require_length(key: str, found: int, layers: int) -> None:
    """Raise `InputError` unless the list at `key` has one entry for each layer."""
    if found != layers:
        raise InputError(
            Problem(
                key=key,
                found=f"{found} entries",
                rule=f"must have one entry a layer, num_hidden_layers {layers}",
                fix=f"use num_hidden_layers {found} or {layers} entries",
            )
        )


def four_times_hidden(config: Config) -> Fields:
    """Return an intermediate size of 4 hidden sizes where the config leaves it open."""
    if config.get("intermediate_size") is None:
        return {"intermediate_size": 4 * config["hidden_size"]}
    return {}


def windows(config: Config, *, pattern: int | None = None) -> Fields:
    """Return the sliding window, and in which layers it holds.

    `layer_types` says it layer by layer; else one layer in `pattern` is full.
    """
    window = config.get("sliding_window")
    if window is None:
        return {}
    types = config.get("layer_types")
    if types is not None:
        return _listed_windows(window, types)
    own = config.get("sliding_window_pattern", pattern)
    if isinstance(own, str):
        return _listed_windows(window, _spelt_types(own, config["num_hidden_layers"]))
    return {"sliding_window": window, "sliding_window_pattern": own}


def full_layers(config: Config, fields: Fields) -> list[int]:
    """Return the indices of layers whose attention is full, given the fields of `windows`."""
    count = config["num_hidden_layers"]
    if "sliding_window" not in fields:
        return list(range(count))
    types, pattern = fields.get("layer_types"), fields.get("sliding_window_pattern")
    if types is not None:
        return [index for index, kind in enumerate(types) if kind == LayerType.FULL]
    return list(range(pattern - 1, count, pattern)) if pattern else []


def _listed_windows(window: int, types: list[str]) -> Fields:
    if LayerType.SLIDING not in types:
        return {"layer_types": types}
    return {"sliding_window": window, "layer_types": types}


def _spelt_types(pattern: str, layers: int) -> list[str]:
    """Return the layer types of a pattern such as "LLLG" (local, global), repeated."""
    kinds = {"L": LayerType.SLIDING.value, "G": LayerType.FULL.value}
    return [kinds.get(pattern[index % len(pattern)], pattern) for index in range(layers)]
