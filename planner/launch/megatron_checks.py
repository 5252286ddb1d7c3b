"""What Megatron-LM itself refuses of its arguments, before it starts.

Each rule restates one of Megatron-LM megatron/training/arguments.py (`validate_args`), core 0.16,
core/transformer/transformer_config.py and core/optimizer/optimizer_config.py (`__post_init__`), or
core/transformer/moe/moe_layer.py (`forward`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

UNSAID = {
    "job.moe.dispatch_dtype": "Megatron-Core's flex dispatcher sends tokens in bf16: it hands "
    "DeepEP one tensor, and no scales (core/transformer/moe/fused_a2a.py)",
    "layout.schedule": "Megatron-Core has 1F1B, interleaved where vpp > 1",
}
"""Key of a scenario -> why Megatron-Core, whatever starts it, cannot be told some of its values."""
_CHUNKS = (
    "num_layers_per_virtual_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank",
    "virtual_pipeline_model_parallel_size",
    "pipeline_model_parallel_layout",
)
"""Arguments that give a rank more than one stage; the last one may."""


def refusals(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield argument and broken rule, for settings that Megatron-LM would not start with."""
    yield from _parallel(settings)
    yield from _numbers(settings)
    yield from _sharding(settings)
    yield from _recompute(settings)
    yield from _experts(settings)


def _on(settings: Mapping[str, Any], name: str) -> bool:
    return settings.get(name) not in (None, False, "", 0)


def _size(settings: Mapping[str, Any], name: str, default: int = 1) -> int:
    text = str(settings.get(name) or default)
    return int(text) if text.isdigit() else default


def _parallel(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    cp = _size(settings, "context_parallel_size")
    length = _size(settings, "seq_length")
    if cp > 1 and length % (2 * cp):
        yield "seq_length", f"must be a multiple of 2 x context-parallel-size = {2 * cp}"
    if _size(settings, "max_position_embeddings", length) < length:
        yield "max_position_embeddings", f"must be at least seq-length {length}"
    vpp = ("num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank")
    given = [name for name in (*vpp, "pipeline_model_parallel_layout") if _on(settings, name)]
    if len(given) > 1:
        yield given[0], f"cannot be given together with {', '.join(given[1:])}"
    flat = _size(settings, "pipeline_model_parallel_size") == 1
    if flat and any(_on(settings, name) for name in vpp):
        yield given[0], "interleaving needs pipeline-model-parallel-size > 1"
    if _on(settings, "tp_comm_overlap") and not _on(settings, "sequence_parallel"):
        yield "tp_comm_overlap", "needs --sequence-parallel"
    experts, ep = _size(settings, "num_experts", 0), _size(settings, "expert_model_parallel_size")
    if ep > 1 and (not experts or experts % ep):
        yield "expert_model_parallel_size", f"must divide num-experts {experts}"
    if ep > 1 and _on(settings, "fp16"):
        yield "expert_model_parallel_size", "is not supported with --fp16"


def _numbers(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if _on(settings, "fp16") and _on(settings, "bf16"):
        yield "bf16", "cannot be given together with --fp16"
    if _on(settings, "fp8_format") and _on(settings, "fp4_format"):
        yield "fp4_format", "cannot be given together with --fp8-format"
    if _on(settings, "moe_grouped_gemm") and not _on(settings, "bf16"):
        yield "moe_grouped_gemm", "needs --bf16"
    if _on(settings, "train_iters") and _on(settings, "train_samples"):
        yield "train_samples", "cannot be given together with --train-iters"
    rotary = settings.get("position_embedding_type") in ("rope", "none")
    if _on(settings, "mtp_num_layers") and not rotary:
        yield "mtp_num_layers", "needs --position-embedding-type rope or none"


def _sharding(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    fsdp = _on(settings, "use_megatron_fsdp")
    shards = _on(settings, "use_distributed_optimizer") or fsdp
    if _on(settings, "overlap_param_gather"):
        if not shards:
            yield "overlap_param_gather", "needs --use-distributed-optimizer"
        if not _on(settings, "overlap_grad_reduce"):
            yield "overlap_param_gather", "needs --overlap-grad-reduce"
    if _on(settings, "fp8_param_gather") and not (shards or _on(settings, "use_torch_fsdp2")):
        yield "fp8_param_gather", "needs --use-distributed-optimizer"
    aware = _on(settings, "use_precision_aware_optimizer")
    if _on(settings, "optimizer_cpu_offload") and not aware:
        yield "optimizer_cpu_offload", "needs --use-precision-aware-optimizer"
    if aware and not shards:
        yield "use_precision_aware_optimizer", "needs --use-distributed-optimizer"
    if aware and settings.get("optimizer") not in (None, "adam"):
        yield "use_precision_aware_optimizer", "needs --optimizer adam"
    if "muon" in str(settings.get("optimizer")) and _on(settings, "use_distributed_optimizer"):
        yield "optimizer", "muon does not run with --use-distributed-optimizer"
    if _on(settings, "use_torch_fsdp2"):
        if _size(settings, "pipeline_model_parallel_size") > 1:
            yield "use_torch_fsdp2", "does not run with pipeline parallelism"
        if _on(settings, "use_distributed_optimizer"):
            yield "use_torch_fsdp2", "does not run with --use-distributed-optimizer"


def _recompute(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    short = _on(settings, "recompute_activations")
    selective = short or settings.get("recompute_granularity") == "selective"
    if selective and _on(settings, "recompute_method"):
        yield "recompute_method", "is not of selective recomputation"
    modules = settings.get("recompute_modules") or ()
    if _on(settings, "fp8_format") and settings.get("fp8_recipe") in (None, "delayed"):
        late = [name for name in ("moe_act", "layernorm") if name in modules]
        if selective and late:
            yield "recompute_modules", f"{late[0]} is not recomputed with --fp8-recipe delayed"
    if _on(settings, "cpu_offloading_num_layers"):
        if _size(settings, "pipeline_model_parallel_size") > 1:
            yield "cpu_offloading_num_layers", "does not run with pipeline parallelism"
        if short or _on(settings, "recompute_granularity"):
            yield "cpu_offloading_num_layers", "does not run with recomputation"


def _experts(settings: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not _on(settings, "num_experts"):
        return
    dispatcher = settings.get("moe_token_dispatcher_type") or "allgather"
    if _size(settings, "tensor_model_parallel_size") > 1 and not _on(settings, "sequence_parallel"):
        yield "sequence_parallel", "experts with tensor parallelism need it"
    shared = _on(settings, "moe_shared_expert_overlap")
    if shared and _on(settings, "moe_shared_expert_intermediate_size") and dispatcher != "alltoall":
        yield "moe_shared_expert_overlap", "needs --moe-token-dispatcher-type alltoall"
    if dispatcher == "flex" and _on(settings, "moe_pad_expert_input_to_capacity"):
        yield "moe_pad_expert_input_to_capacity", "is not of the flex dispatcher with DeepEP"
    if _on(settings, "overlap_moe_expert_parallel_comm"):
        name = "overlap_moe_expert_parallel_comm"
        if _size(settings, "expert_model_parallel_size") == 1 or dispatcher == "allgather":
            yield name, "needs expert parallelism and the alltoall or the flex dispatcher"
        if settings.get("recompute_granularity") == "full":
            yield name, "does not run with full recomputation"
        if shared:
            yield name, "does not run with --moe-shared-expert-overlap"
        flat = _size(settings, "pipeline_model_parallel_size") == 1
        if not flat and not any(_on(settings, chunks) for chunks in _CHUNKS):
            yield name, "needs interleaving where --pipeline-model-parallel-size > 1"
