"""Reads the layout of a torchtitan file."""

from __future__ import annotations

from math import ceil
from typing import Any

from planner.launch.keys import Keys
from planner.launch.titan_keys import LEFTOVER, SCHEDULES, SINGLE
from simulator.parallel.layout import (
    ZERO_GRADIENTS,
    ZERO_PARAMETERS,
    ContextExchange,
    Recompute,
    ScheduleName,
)
from simulator.workload.load import load_model

_EFFECT_ENDS = 1
"""Layers that embedding and head each count as, where nothing is said."""
_MODES = {
    "none": Recompute.NONE,
    "selective": Recompute.SELECTIVE,
    "full": Recompute.FULL,
}
_ROTATIONS = {
    "allgather": ContextExchange.ALL_GATHER,
    "alltoall": ContextExchange.RING,
}
"""torchtitan's "alltoall" hands keys and values on in a ring (torch/distributed/tensor/
experimental/_attention.py, _AllToAllRotater)."""
_POLICIES = {"default": ZERO_PARAMETERS, "always": ZERO_PARAMETERS, "never": ZERO_GRADIENTS}


def read_layout(keys: Keys, model: str | dict[str, Any], world_size: int) -> dict[str, Any]:
    """Return the fields of a layout; of a pipeline also "accumulation", its local batch."""
    place = "parallelism."
    tp = keys.whole(place + "tensor_parallel_degree", 1)
    pp = keys.whole(place + "pipeline_parallel_degree", 1)
    cp = keys.whole(place + "context_parallel_degree", 1)
    replicas = keys.whole(place + "data_parallel_replicate_degree", 1)
    shard = keys.whole(place + "data_parallel_shard_degree", LEFTOVER, least=LEFTOVER)
    inner = tp * pp * cp * replicas
    if shard == LEFTOVER:
        shard = max(world_size // inner, 1)
    if inner * shard != world_size:
        rule = f"degrees multiply to {inner * shard}, and there are {world_size} accelerators"
        keys.complain(place + "data_parallel_shard_degree", rule, fix="-1, or other --nodes")
    sharded = shard * cp > 1
    policy = keys.word(place + "fsdp_reshard_after_forward", _POLICIES, ZERO_PARAMETERS)
    found: dict[str, Any] = {
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "dp": replicas * shard,
        "micro_batch_size": keys.whole("training.local_batch_size", 8),
        "sequence_parallel": tp > 1 and keys.flag(place + "enable_sequence_parallel", default=True),
        "zero_stage": policy if sharded else 0,
    }
    if sharded and replicas > 1:
        found["shard_size"] = shard * cp
    rotation = keys.word(
        place + "context_parallel_rotate_method", _ROTATIONS, ContextExchange.ALL_GATHER
    )
    if cp > 1:
        found["cp_comm_type"] = rotation.value
    found |= _experts(keys, tp) | _recompute(keys)
    layers = _spec_layers(model)
    return found | (_pipeline(keys, found, layers) if pp > 1 else _no_pipeline(keys))


def _spec_layers(model: str | dict[str, Any]) -> int:
    if isinstance(model, str):
        return load_model(model).spec.num_hidden_layers
    return int(model["num_hidden_layers"])


def _experts(keys: Keys, tp: int) -> dict[str, Any]:
    ep = keys.whole("parallelism.expert_parallel_degree", 1)
    etp = keys.whole("parallelism.expert_tensor_parallel_degree", tp if ep == 1 else 1)
    return {"ep": ep, "etp": etp} if ep > 1 or etp != tp else {}


def _recompute(keys: Keys) -> dict[str, Any]:
    place = "activation_checkpoint."
    mode = keys.word(place + "mode", _MODES, Recompute.SELECTIVE)
    option = keys.take(place + "selective_ac_option")
    if mode is Recompute.SELECTIVE and str(option or "op") != "op":
        rule = "recomputing every so many layers is not modelled for torchtitan"
        keys.wrong(place + "selective_ac_option", rule, '"op", or mode "full"')
    return {"recompute": mode.value} if mode is not Recompute.NONE else {}


def _no_pipeline(keys: Keys) -> dict[str, Any]:
    for name in ("schedule", "schedule_csv", "microbatch_size", "layers_per_stage"):
        keys.take(f"parallelism.pipeline_parallel_{name}")
    for end in ("first", "last"):
        keys.take(f"parallelism.pipeline_parallel_{end}_stage_less_layers")
    keys.take("parallelism.module_fqns_per_model_part")
    return {}


def _pipeline(keys: Keys, layout: dict[str, Any], layers: int) -> dict[str, Any]:
    """Source: torchtitan 0.3.0 distributed/pipeline_parallel.py, the checks of stages per rank."""
    place, pp = "parallelism.pipeline_parallel_", layout["pp"]
    text = str(keys.values.get(place + "schedule", "1F1B"))
    schedule = keys.word(place + "schedule", SCHEDULES, ScheduleName.ONE_F_ONE_B)
    if keys.take(place + "schedule_csv"):
        keys.wrong(place + "schedule_csv", "is read with `layout.schedule_file` of a scenario")
    micro = keys.whole(place + "microbatch_size", 1)
    local = layout["micro_batch_size"]
    if local % micro:
        keys.wrong(place + "microbatch_size", f"must divide local_batch_size {local}")
    ends = [
        keys.whole(f"{place}{end}_stage_less_layers", _EFFECT_ENDS, least=0)
        for end in ("first", "last")
    ]
    each = keys.whole(place + "layers_per_stage")
    parts = keys.take("parallelism.module_fqns_per_model_part")
    stages = pp if text in SINGLE else 2 * pp
    if parts is not None:
        stages = len(parts)
    elif each is not None:
        stages = ceil((layers + sum(ends)) / each)
    if stages % pp or (text in SINGLE) != (stages == pp):
        keys.complain(place + "schedule", f"{stages} stages do not suit {text} on pp = {pp}")
    found: dict[str, Any] = {
        "schedule": schedule.value,
        "vpp": max(stages // pp, 1),
        "micro_batch_size": micro,
        "accumulation": local,
    }
    if parts is not None:
        found["layers_per_stage"] = [sum(str(n).startswith("layers.") for n in p) for p in parts]
    elif ends != [_EFFECT_ENDS, _EFFECT_ENDS]:
        found["layers_per_stage"] = _weighted(layers, stages, ends)
    return found


def _weighted(layers: int, stages: int, ends: list[int]) -> list[int]:
    each, extra = divmod(layers + sum(ends), stages)
    split = [each + (stage < extra) for stage in range(stages)]
    split[0] -= ends[0]
    split[-1] -= ends[1]
    return split
