"""Reads a layout from Megatron's arguments.

Source: as `planner.launch.megatron_layout`.
"""

from __future__ import annotations

import re
from math import prod
from typing import Any

from planner.launch.keys import Keys
from planner.launch.megatron_layout import SIZES, STRATEGIES
from planner.launch.megatron_notation import parse_stages, stage_problems
from simulator.parallel.layout import (
    ZERO_PARAMETERS,
    ZERO_STATES,
    ContextExchange,
    Recompute,
    RecomputeMethod,
    RecomputeModule,
)

_EXCHANGES = {exchange.value: exchange for exchange in ContextExchange}
_ACCOUNTED = ("account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split")


def read_layout(keys: Keys, layers: int, world_size: int) -> dict[str, Any]:
    """Return the fields of a layout that fills `world_size` ranks."""
    found: dict[str, Any] = {}
    for name, key in SIZES.items():
        value = keys.whole(name)
        if value is not None:
            found[key] = value
    found.setdefault("micro_batch_size", 1)
    tp, pp, cp = found.get("tp", 1), found.get("pp", 1), found.get("cp", 1)
    found["dp"] = _replicas(keys, tp * pp * cp, world_size)
    found["sequence_parallel"] = keys.flag("sequence_parallel") and tp > 1
    if "ep" in found and not keys.given("num_experts") and found["ep"] == 1:
        del found["ep"]
        found.pop("etp", None)
    found |= _read_stages(keys, layers, pp)
    found |= _read_context(keys, cp)
    found |= _read_sharding(keys, found["dp"] * cp)
    found |= _read_recompute(keys, layers // (pp * found.get("vpp", 1)))
    found["offload_layers"] = keys.whole("cpu_offloading_num_layers", 0, least=0)
    if keys.flag("optimizer_cpu_offload"):
        found["optimizer_offload"] = keys.real("optimizer_offload_fraction", 1.0, least=0, most=1)
    return found


def _replicas(keys: Keys, inner: int, world_size: int) -> int:
    """Return dp. Source: `validate_args`: the world size is a multiple of tp x pp x cp."""
    if world_size % inner:
        keys.complain(
            "tensor_model_parallel_size",
            f"tp x pp x cp = {inner} must divide the {world_size} accelerators",
            fix=f"--nodes for a multiple of {inner} accelerators",
        )
        return 1
    return world_size // inner


def _read_stages(keys: Keys, layers: int, pp: int) -> dict[str, Any]:
    text = keys.take("pipeline_model_parallel_layout")
    if text is not None:
        for name in _ACCOUNTED:
            if keys.flag(name):
                keys.wrong(name, "cannot be given together with pipeline_model_parallel_layout")
        return _read_notation(keys, str(text), layers, pp)
    each = keys.whole("num_layers_per_virtual_pipeline_stage")
    vpp = keys.whole("num_virtual_stages_per_pipeline_rank")
    vpp = keys.whole("virtual_pipeline_model_parallel_size", vpp)
    if each is not None:
        # Source: `validate_args`: embedding and loss are among the layers that are divided.
        whole = (layers + sum(keys.flag(name) for name in _ACCOUNTED)) // pp
        if whole % each:
            rule = f"must divide the {whole} layers of a stage"
            keys.wrong("num_layers_per_virtual_pipeline_stage", rule)
        vpp = max(whole // each, 1)
    stages = pp * (vpp or 1)
    found = {"vpp": vpp} if vpp and vpp > 1 else {}
    split = _uneven(keys, layers, pp, vpp or 1)
    if split is not None and len(split) == stages:
        return {**found, "layers_per_stage": split}
    return found


def _uneven(keys: Keys, layers: int, pp: int, vpp: int) -> list[int] | None:
    """Return the layers of each virtual stage where the ends take their own number.

    Source: Megatron-LM core/transformer/transformer_block.py, get_num_layers_to_build.
    """
    first = keys.whole("decoder_first_pipeline_num_layers")
    last = keys.whole("decoder_last_pipeline_num_layers")
    embedding, loss = (keys.flag(name) for name in _ACCOUNTED)
    if first is None and last is None and not embedding and not loss:
        return None
    if embedding or loss:
        each, rest = divmod(layers + embedding + loss, pp * vpp)
        split = [each] * (pp * vpp)
        split[0] -= embedding
        split[-1] -= loss
    else:
        ends = [(first, 0), (last, pp - 1)]
        taken = {place: count for count, place in ends if count is not None}
        middle = max(pp - len(taken), 1)
        each, rest = divmod(layers - sum(taken.values()), middle)
        ranks = [taken.get(place, each) for place in range(pp)]
        rest = rest or any(count % vpp for count in ranks)
        split = [count // vpp for _ in range(vpp) for count in ranks]
    if rest:
        rule = f"{layers} layers do not spread evenly over pp {pp} x vpp {vpp} with these ends"
        keys.complain("pipeline_model_parallel_size", rule)
        return None
    return split


def _read_notation(keys: Keys, text: str, layers: int, pp: int) -> dict[str, Any]:
    name = "pipeline_model_parallel_layout"
    stages = parse_stages(text)
    if stages is None:
        keys.wrong(name, "must be stages of E, t, m and L", "Et*3|(tt|)*29|mL, say")
        return {}
    modules = str(keys.values.get("mtp_num_layers") or "")
    predicting = int(modules) if modules.isdigit() else None
    problems = list(stage_problems(stages, layers, pp, predicting))
    for rule, fix in problems:
        keys.wrong(name, rule, fix)
    if problems:
        return {}
    vpp, split = len(stages) // pp, [stage.count("t") for stage in stages]
    found = {"layers_per_stage": split} if len(set(split)) > 1 else {}
    return ({"vpp": vpp} if vpp > 1 else {}) | found


def _read_context(keys: Keys, cp: int) -> dict[str, Any]:
    exchange = keys.word("cp_comm_type", _EXCHANGES, ContextExchange.RING)
    sizes = keys.take("hierarchical_context_parallel_sizes")
    if cp == 1:
        return {}
    found: dict[str, Any] = {"cp_comm_type": exchange.value}
    if exchange is ContextExchange.HIERARCHICAL:
        numbers = [int(text) for text in re.findall(r"\d+", str(sizes))]
        if len(numbers) != 2 or prod(numbers) != cp:  # noqa: PLR2004
            rule = f"must be two sizes whose product is cp = {cp}"
            keys.complain("hierarchical_context_parallel_sizes", rule, found=str(sizes))
        else:
            found["cp_inner"] = numbers[0]
    return found


def _read_sharding(keys: Keys, ranks: int) -> dict[str, Any]:
    stage = ZERO_STATES if keys.flag("use_distributed_optimizer") else 0
    strategy = keys.word("data_parallel_sharding_strategy", STRATEGIES, 0)
    if keys.flag("use_megatron_fsdp"):
        stage = strategy
    if keys.flag("use_torch_fsdp2"):
        stage = ZERO_PARAMETERS
    copies = keys.whole("num_distributed_optimizer_instances", 1)
    shards = {"shard_size": ranks // copies} if stage and copies > 1 else {}
    return {"zero_stage": stage, **shards}


def _read_recompute(keys: Keys, layers: int) -> dict[str, Any]:
    kinds = {kind.value: kind for kind in (Recompute.SELECTIVE, Recompute.FULL)}
    kind = keys.word("recompute_granularity", kinds, Recompute.NONE)
    if keys.flag("recompute_activations"):
        kind = Recompute.SELECTIVE
    modules = keys.take("recompute_modules")
    methods = {method.value: method for method in RecomputeMethod}
    method = keys.word("recompute_method", methods, RecomputeMethod.UNIFORM)
    number = keys.whole("recompute_num_layers", 1)
    if kind is Recompute.SELECTIVE:
        return {"recompute": kind.value, "recompute_modules": _modules(keys, modules)}
    if kind is Recompute.NONE:
        return {}
    found: dict[str, Any] = {"recompute": kind.value}
    if method is RecomputeMethod.UNIFORM and number == 1:
        return found
    if method is RecomputeMethod.BLOCK and number >= layers:
        keys.notes.append(f"recompute_num_layers {number} is all {layers} layers of a stage")
        return found
    return {**found, "recompute_method": method.value, "recompute_num_layers": number}


def _modules(keys: Keys, value: Any) -> list[str]:
    words = value if isinstance(value, list) else re.findall(r"\w+", str(value or ""))
    known = [module.value for module in RecomputeModule]
    for word in words:
        if word not in known:
            rule, fix = f"{word!r} is not modelled", "one of: " + ", ".join(known)
            keys.wrong("recompute_modules", rule, fix)
    found = [word for word in words if word in known]
    return [] if found == [RecomputeModule.CORE_ATTENTION.value] else found
