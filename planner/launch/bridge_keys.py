"""Megatron-Bridge's names: sections of overrides, flags, what only a recipe knows.

Source: Megatron-Bridge scripts/training/run_recipe.py, src/megatron/bridge/training/config.py.
"""

from __future__ import annotations

import re

STACK = "megatron-bridge"
SECTIONS = {
    "train": ("global_batch_size", "micro_batch_size", "train_iters", "train_samples"),
    "ddp": (
        "use_distributed_optimizer",
        "overlap_grad_reduce",
        "overlap_param_gather",
        "grad_reduce_in_bf16",
        "use_megatron_fsdp",
        "data_parallel_sharding_strategy",
        "num_distributed_optimizer_instances",
    ),
    "optimizer": (
        "optimizer",
        "sgd_momentum",
        "use_precision_aware_optimizer",
        "main_grads_dtype",
        "main_params_dtype",
        "exp_avg_dtype",
        "exp_avg_sq_dtype",
        "optimizer_cpu_offload",
        "optimizer_offload_fraction",
    ),
    "comm_overlap": ("tp_comm_overlap",),
    "dist": ("use_torch_fsdp2",),
}
"""Section -> the settings that stand in it; all others are of `model`."""
OF = {name: section for section, names in SECTIONS.items() for name in names}
CONFIGS = {
    "num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
    "num_layers_in_last_pipeline_stage": "decoder_last_pipeline_num_layers",
    "dist.use_megatron_fsdp": "use_megatron_fsdp",
    "dist.use_torch_fsdp2": "use_torch_fsdp2",
}
"""Name in a config -> that of Megatron-LM's argument, where they differ."""
SHORT = {
    "ms": "train_iters",
    "max_steps": "train_iters",
    "gb": "global_batch_size",
    "mb": "micro_batch_size",
    "sl": "seq_length",
    "tp": "tensor_model_parallel_size",
    "pp": "pipeline_model_parallel_size",
    "cp": "context_parallel_size",
    "ep": "expert_model_parallel_size",
    "vp": "virtual_pipeline_model_parallel_size",
}
"""Convenience flags of run_recipe.py."""
NEEDED = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "context_parallel_size",
    "micro_batch_size",
    "global_batch_size",
    "seq_length",
)
"""Settings that a recipe has its own values of, which this project does not know."""
OTHERS = (
    "virtual_pipeline_model_parallel_size",
    "expert_model_parallel_size",
    "sequence_parallel",
    "recompute_granularity",
)
RECIPE_ONLY = re.compile(
    r"(tokenizer|scheduler|checkpoint|logger|rng|dist|profiling|dataset|validation|peft)\..*"
    r"|mode|dataset|recipe|model|nodes|gpus_per_node|account|partition|container_image|step_func"
    r"|num_gpus|mount|env|srun_arg|additional_slurm_params|save_dir|lr|warmup_iters|config_file"
)


def spelt(name: str) -> str:
    """Return a setting with its section."""
    if "." in name or name in ("recipe", "mode", "dataset", "mixed_precision"):
        return name
    own = {argument: config for config, argument in CONFIGS.items() if "." not in config}
    return f"{OF.get(name, 'model')}.{own.get(name, name)}"
