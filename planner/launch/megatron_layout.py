"""A layout in Megatron's arguments, and back.

Source: Megatron-LM megatron/training/arguments.py (`validate_args`, `_add_distributed_args`,
`_add_training_args`), core/transformer/pipeline_parallel_layer_layout.py, core 0.16.
"""

from __future__ import annotations

from typing import Any

from planner.launch.comparing import split_of
from planner.launch.megatron_notation import spell_stages
from planner.launch.records import Argument, Run
from simulator.parallel.layout import (
    ZERO_GRADIENTS,
    ZERO_PARAMETERS,
    ZERO_STATES,
    ContextExchange,
    ParallelLayout,
    Recompute,
    RecomputeMethod,
    RecomputeModule,
)

STRATEGIES = {
    "no_shard": 0,
    "optim": ZERO_STATES,
    "optim_grads": ZERO_GRADIENTS,
    "optim_grads_params": ZERO_PARAMETERS,
}
"""Of --data-parallel-sharding-strategy (Megatron-FSDP)."""
SIZES = {
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "expert_tensor_parallel_size": "etp",
    "micro_batch_size": "micro_batch_size",
    "microbatch_group_size_per_vp_stage": "microbatch_group_size",
}
LAYOUT_ARGUMENTS = (
    *(Argument(name=name, key=f"layout.{key}") for name, key in SIZES.items()),
    Argument(name="sequence_parallel", key="layout.sequence_parallel"),
    Argument(name="num_layers_per_virtual_pipeline_stage", key="layout.vpp"),
    Argument(name="num_virtual_stages_per_pipeline_rank", key="layout.vpp"),
    Argument(name="virtual_pipeline_model_parallel_size", key="layout.vpp"),
    Argument(name="pipeline_model_parallel_layout", key="layout.layers_per_stage"),
    Argument(name="decoder_first_pipeline_num_layers", key="layout.layers_per_stage"),
    Argument(name="decoder_last_pipeline_num_layers", key="layout.layers_per_stage"),
    Argument(name="account_for_embedding_in_pipeline_split", key="layout.layers_per_stage"),
    Argument(name="account_for_loss_in_pipeline_split", key="layout.layers_per_stage"),
    Argument(name="cp_comm_type", key="layout.cp_comm_type"),
    Argument(name="hierarchical_context_parallel_sizes", key="layout.cp_inner"),
    Argument(name="use_distributed_optimizer", key="layout.zero_stage", note="1"),
    Argument(name="use_megatron_fsdp", key="layout.zero_stage"),
    Argument(name="data_parallel_sharding_strategy", key="layout.zero_stage"),
    Argument(name="use_torch_fsdp2", key="layout.zero_stage", note="3"),
    Argument(name="num_distributed_optimizer_instances", key="layout.shard_size"),
    Argument(name="recompute_activations", key="layout.recompute", note="selective"),
    Argument(name="recompute_granularity", key="layout.recompute"),
    Argument(name="recompute_modules", key="layout.recompute_modules"),
    Argument(name="recompute_method", key="layout.recompute_method"),
    Argument(name="recompute_num_layers", key="layout.recompute_num_layers"),
    Argument(name="cpu_offloading_num_layers", key="layout.offload_layers"),
    Argument(name="optimizer_cpu_offload", key="layout.optimizer_offload"),
    Argument(name="optimizer_offload_fraction", key="layout.optimizer_offload"),
)


def layout_settings(run: Run) -> dict[str, Any]:
    """Return what says the layout of a run to Megatron."""
    layout = run.layout
    settings: dict[str, Any] = {name: getattr(layout, key) for name, key in SIZES.items()}
    if layout.ep == 1 and run.model.moe is None:
        settings |= {"expert_model_parallel_size": None, "expert_tensor_parallel_size": None}
    return {
        **settings,
        "sequence_parallel": layout.sequence_parallel and layout.tp > 1,
        **_stages(run),
        **_context(layout),
        **_sharding(layout),
        **_recompute(layout),
        "cpu_offloading_num_layers": layout.offload_layers or None,
        "optimizer_cpu_offload": layout.optimizer_offload > 0,
        "optimizer_offload_fraction": layout.optimizer_offload or None,
    }


def is_serial(run: Run) -> bool:
    """Return whether kernels must start in the order of their calls (one device connection)."""
    layout = run.layout
    return (layout.tp > 1 or layout.cp > 1) and layout.zero_stage <= ZERO_STATES


def _stages(run: Run) -> dict[str, Any]:
    layout = run.layout
    split = split_of(run)
    if split is not None and len(set(split)) > 1:
        return {
            "pipeline_model_parallel_layout": spell_stages(
                split, run.model.num_nextn_predict_layers
            )
        }
    return {"virtual_pipeline_model_parallel_size": layout.vpp if layout.vpp > 1 else None}


def _context(layout: ParallelLayout) -> dict[str, Any]:
    if layout.cp == 1:
        return {}
    hierarchical = layout.cp_comm_type is ContextExchange.HIERARCHICAL
    inner = layout.cp_inner or 1
    return {
        "cp_comm_type": layout.cp_comm_type.value,
        "hierarchical_context_parallel_sizes": [inner, layout.cp // inner]
        if hierarchical
        else None,
    }


def _sharding(layout: ParallelLayout) -> dict[str, Any]:
    copies = layout.data_ranks // layout.shard_ranks
    settings: dict[str, Any] = {
        "use_distributed_optimizer": layout.zero_stage > 0,
        "num_distributed_optimizer_instances": copies if copies > 1 else None,
    }
    if layout.zero_stage > ZERO_STATES:
        names = {stage: name for name, stage in STRATEGIES.items()}
        settings["use_megatron_fsdp"] = True
        settings["data_parallel_sharding_strategy"] = names[layout.zero_stage]
    return settings


def _recompute(layout: ParallelLayout) -> dict[str, Any]:
    match layout.recompute:
        case Recompute.NONE:
            return {}
        case Recompute.SELECTIVE:
            modules = layout.recompute_modules or (RecomputeModule.CORE_ATTENTION,)
            return {
                "recompute_granularity": "selective",
                "recompute_modules": [module.value for module in modules],
            }
        case Recompute.FULL:
            layers = layout.recompute_num_layers
            block = layers is not None and layout.recompute_method is not RecomputeMethod.UNIFORM
            return {
                "recompute_granularity": "full",
                "recompute_method": "block" if block else "uniform",
                "recompute_num_layers": layers or 1,
            }
