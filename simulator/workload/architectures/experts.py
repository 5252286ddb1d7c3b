"""What architectures with a mixture of experts share: their keys, and how they become fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from simulator.errors import InputError, Problem, UnsupportedError
from simulator.workload.architectures.entry import Config, Fields

EXPERTS = frozenset({"num_experts", "num_experts_per_tok"})
OWN_WIDTH = EXPERTS | {"moe_intermediate_size"}
GROUPS = frozenset({"n_group", "topk_group"})
STEP = frozenset({"decoder_sparse_step", "mlp_only_layers", "mlp_layer_types"})
FIRST_DENSE = frozenset({"first_k_dense_replace", "moe_layer_freq", "mlp_layer_types"})
ROUTER = frozenset(
    {
        "aux_loss_alpha",
        "ep_size",
        "input_jitter_noise",
        "moe_jitter_eps",
        "moe_loss_weight",
        "moe_norm_min",
        "moe_normalize_expert_weights",
        "norm_topk_prob",
        "output_router_logits",
        "routed_scaling_factor",
        "router_aux_loss_coef",
        "router_jitter_noise",
        "router_z_loss_coef",
        "scoring_func",
        "seq_aux",
        "uniform_expert_assignment",
    }
)
"""Keys of the router's weights, noise and losses: neither shapes nor counts depend on them."""
DENSE = "dense"


def mixture(config: Config, dense_layers: Iterable[int] = (), **fields: Any) -> Fields:
    """Return the fields of a model with experts in all layers but `dense_layers`.

    `fields` are those of `Experts` beside numbers and, where it is not moe_intermediate_size,
    the width. A model that is left without experts is dense. Where every layer has experts,
    intermediate_size is not read, and their width stands in for one that is left out.
    """
    layers = range(config["num_hidden_layers"])
    dense = sorted(set(dense_layers) & set(layers))
    count = uniform(config, "num_experts")
    if not count or len(dense) == len(layers):
        return {}
    width = fields.pop("moe_intermediate_size", None) or uniform(config, "moe_intermediate_size")
    experts = {
        "num_experts": count,
        "num_experts_per_tok": uniform(config, "num_experts_per_tok"),
        "moe_intermediate_size": width,
        "dense_layers": dense,
        **fields,
    }
    moe = {key: value for key, value in experts.items() if value is not None}
    return {"moe": moe, **_dense_width(config, dense, width)}


def _dense_width(config: Config, dense: list[int], width: int | None) -> Fields:
    if config.get("intermediate_size") is not None:
        return {}
    if dense:
        raise InputError(
            Problem(
                key="intermediate_size",
                rule=f"is required: {len(dense)} layers, such as {dense[0]}, have a dense MLP",
                fix="write the value of the model's published config.json",
            )
        )
    return {"intermediate_size": width}


def uniform(config: Config, key: str) -> int | None:
    """Return the value at `key`, of a list the one value of all layers.

    Raises:
        UnsupportedError: a list whose layers differ.
    """
    value = config.get(key)
    if value is None or isinstance(value, int):
        return value
    if len(set(value)) == 1 and len(value) >= config["num_hidden_layers"]:
        return int(value[0])
    raise UnsupportedError(
        Problem(
            key=key,
            found=f"{len(value)} entries, {len(set(value))} distinct",
            rule="must be the same in every layer; experts that differ are not modelled yet",
            fix="write one number, or a list of equal numbers with one entry a layer",
        )
    )


def by_step(config: Config) -> list[int]:
    """Return the dense layers of Qwen's models: those off the step, and those listed.

    Source: transformers 4.57, modeling_qwen3_moe.py, Qwen3MoeDecoderLayer.
    """
    if config.get("mlp_layer_types") is not None:
        return by_types(config)
    step, listed = config["decoder_sparse_step"], config["mlp_only_layers"]
    layers = range(config["num_hidden_layers"])
    return [index for index in layers if index in listed or (index + 1) % step]


def after_first(config: Config) -> list[int]:
    """Return the dense layers of DeepSeek's models: the first ones, and those off the frequency.

    Source: DeepSeek-V3 modeling_deepseek.py, DeepseekV3DecoderLayer.
    """
    if config.get("mlp_layer_types") is not None:
        return by_types(config)
    first, step = config["first_k_dense_replace"], config["moe_layer_freq"]
    layers = range(config["num_hidden_layers"])
    return [index for index in layers if index < first or index % step]


def by_types(config: Config) -> list[int]:
    """Return the layers that `mlp_layer_types` names dense (transformers 5)."""
    types, layers = config["mlp_layer_types"], config["num_hidden_layers"]
    if len(types) != layers:
        raise InputError(
            Problem(
                key="mlp_layer_types",
                found=f"{len(types)} entries",
                rule=f"must have one entry a layer, num_hidden_layers {layers}",
                fix=f"use num_hidden_layers {len(types)} or {layers} entries",
            )
        )
    return [index for index, kind in enumerate(types) if kind == DENSE]


def groups(config: Config) -> Fields:
    """Return the groups that a token's experts are limited to, where the config has any."""
    return {"n_group": config.get("n_group") or 1, "topk_group": config.get("topk_group") or 1}
