"""Reads Megatron-DeepSpeed's scripts: Megatron's arguments beside DeepSpeed's JSON file.

Source: Megatron-DeepSpeed megatron/arguments.py, examples_deepspeed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from planner.launch.keys import Keys
from planner.launch.megatron_lm import draft_of, override_keys
from planner.launch.records import Draft, Given
from planner.launch.sizes import cluster_size

_RENAMED = {
    "num_key_value_heads": "num_query_groups",
    "ds_sequence_parallel_size": "context_parallel_size",
}
_TAKEN = re.compile(r"deepspeed.*|no_pipeline_parallel|ds_.*|.*checkpoint_num_layers|zero_.*")
"""Arguments that start DeepSpeed; its JSON file says what they ask for."""
_STACK = "megatron-deepspeed"


def read_megatron_deepspeed(
    given: Given,
    flags: Mapping[str, Any],
    sizes: tuple[int | None, int | None],
    configs: Sequence[Mapping[str, Any]],
) -> Draft:
    """Return what the arguments say, and of DeepSpeed's configuration its ZeRO stage."""
    values = {_RENAMED.get(name, name): value for name, value in flags.items()}
    if "num_query_groups" in values:
        values["group_query_attention"] = True
    if values.get("normalization") in ("rmsnorm", "layernorm"):
        values["normalization"] = {"r": "RMSNorm", "l": "LayerNorm"}[values["normalization"][0]]
    if values.pop("checkpoint_activations", False):
        values |= {"recompute_granularity": "full"}
    if "context_parallel_size" in values:
        values["cp_comm_type"] = "a2a"
    stage = _stage(values, configs)
    if stage:
        names = {1: "optim", 2: "optim_grads", 3: "optim_grads_params"}
        values["use_megatron_fsdp"] = True
        values["data_parallel_sharding_strategy"] = names.get(stage, str(stage))
    kept = {name: value for name, value in values.items() if not _TAKEN.fullmatch(name)}
    kept = {name: value for name, value in kept.items() if not name.isupper()}
    where = given.files[0].name
    keys = Keys(kept, where, spell=_spelt, ignore=given.options.ignore)
    override_keys(keys, given)
    nodes, gpus = cluster_size(given, *sizes, keys)
    return draft_of(keys, given, nodes, gpus, stack=given.options.stack or _STACK)


def _spelt(name: str) -> str:
    return "--" + name.replace("_", "-")


def _stage(values: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]) -> int:
    """Return the ZeRO stage: that of the JSON file, or else of --zero-stage."""
    for config in configs:
        stage = config.get("zero_optimization", {}).get("stage")
        if stage is not None:
            return int(stage)
    text = str(values.get("zero_stage", 0))
    return int(text) if text.isdigit() else 0
