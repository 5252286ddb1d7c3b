"""torchtitan's keys: which a forecast follows, which old names mean the same, which do not matter.

Source: torchtitan 0.3.0 config/configs.py; 0.1 and 0.2 config/job_config.py.
"""

from __future__ import annotations

import re

from planner.launch.records import Argument
from simulator.parallel.layout import ScheduleName

LEFTOVER = -1
"""Of data_parallel_shard_degree and global_batch_size: what is left, or follows."""
SCHEDULES = {
    "GPipe": ScheduleName.GPIPE,
    "1F1B": ScheduleName.ONE_F_ONE_B,
    "Interleaved1F1B": ScheduleName.INTERLEAVED,
    "LoopedBFS": ScheduleName.LOOPED_BFS,
    "InterleavedZeroBubble": ScheduleName.ZERO_BUBBLE_H1,
    "ZBVZeroBubble": ScheduleName.ZERO_BUBBLE_V,
    "DualPipeV": ScheduleName.DUALPIPE_V,
}
SINGLE = ("GPipe", "1F1B")
"""Schedules with one chunk a rank; the others have two where nothing is said."""

OLD_NAMES = {
    "training.batch_size": "training.local_batch_size",
    "training.data_parallel_replicate_degree": "parallelism.data_parallel_replicate_degree",
    "training.data_parallel_shard_degree": "parallelism.data_parallel_shard_degree",
    "training.tensor_parallel_degree": "parallelism.tensor_parallel_degree",
    "training.compile": "compile.enable",
    "experimental.context_parallel_degree": "parallelism.context_parallel_degree",
    "experimental.pipeline_parallel_degree": "parallelism.pipeline_parallel_degree",
    "experimental.pipeline_parallel_schedule": "parallelism.pipeline_parallel_schedule",
    "experimental.enable_async_tensor_parallel": "compile.enable_async_tensor_parallel",
    "parallelism.enable_async_tensor_parallel": "compile.enable_async_tensor_parallel",
    "float8.recipe_name": "quantize.linear.float8.recipe_name",
    "float8.enable_fsdp_float8_all_gather": "quantize.linear.float8.enable_fsdp_float8_all_gather",
}
"""Names of earlier versions -> the last one."""

HARMLESS = re.compile(
    r"""
    (job|profiling|profiler|metrics|checkpoint|comm|fault_tolerance|validation|validator|debug
    |experimental|lr_scheduler|memory_estimation|dataloader|tokenizer|hf_assets|loss|override)\..*
    |dump_folder|hf_assets_path|model\.(hf_assets_path|tokenizer_path|print_after_conversion|norm_type)
    |optimizer\.(lr|eps|beta1|beta2|weight_decay|implementation)|training\.(dataset.*|max_norm|steps)
    |training\.(gc_freq|gc_debug|seed|deterministic|warmup_steps|data_parallel_type)
    |training\.(mixed_precision_reduce|disable_cuda_graphs)|float8\..*|quantize\..*|mx\..*
    |compile\.(components|backend)|parallelism\.(spmd_backend|context_parallel_load_balancer)
    |parallelism\.(disable_loss_parallel|pipeline_parallel_split_points)
    |activation_checkpoint\.(per_op_sac.*|preserve_rng_state|early_stop|determinism_check|debug)
    |optimizer\.early_step_in_backward
    """,
    re.VERBOSE,
)
NOTED = {
    "not timed apart": re.compile(
        r"parallelism\.(enable_fsdp_symm_mem|expert_parallel_comm_backend|deepep.*|hybridep.*)"
        r"|activation_checkpoint\.visualize_memory_budget_pareto"
    ),
}
ARGUMENTS = (
    Argument(name="model.name", key="model", note="and model.flavor; 0.3: --module and --config"),
    Argument(name="model.converters", key="job.precision", note="float8 or mx"),
    Argument(name="training.local_batch_size", key="layout.micro_batch_size"),
    Argument(name="training.global_batch_size", key="job.global_batch_size"),
    Argument(name="training.seq_len", key="job.seq_length"),
    Argument(name="training.steps", key="job.tokens"),
    Argument(name="training.dtype", key="", note="float32; all in bfloat16 is refused"),
    Argument(name="training.mixed_precision_param", key="job.precision"),
    Argument(name="training.enable_cpu_offload", key="layout.optimizer_offload", note="refused"),
    Argument(name="parallelism.data_parallel_replicate_degree", key="layout.shard_size"),
    Argument(name="parallelism.data_parallel_shard_degree", key="layout.zero_stage"),
    Argument(name="parallelism.fsdp_reshard_after_forward", key="layout.zero_stage"),
    Argument(name="parallelism.tensor_parallel_degree", key="layout.tp"),
    Argument(name="parallelism.enable_sequence_parallel", key="layout.sequence_parallel"),
    Argument(name="parallelism.pipeline_parallel_degree", key="layout.pp"),
    Argument(name="parallelism.pipeline_parallel_schedule", key="layout.schedule"),
    Argument(name="parallelism.pipeline_parallel_schedule_csv", key="layout.schedule_file"),
    Argument(name="parallelism.pipeline_parallel_microbatch_size", key="layout.micro_batch_size"),
    Argument(name="parallelism.pipeline_parallel_layers_per_stage", key="layout.vpp"),
    Argument(name="parallelism.module_fqns_per_model_part", key="layout.layers_per_stage"),
    Argument(
        name="parallelism.pipeline_parallel_first_stage_less_layers", key="layout.layers_per_stage"
    ),
    Argument(
        name="parallelism.pipeline_parallel_last_stage_less_layers", key="layout.layers_per_stage"
    ),
    Argument(name="parallelism.context_parallel_degree", key="layout.cp"),
    Argument(name="parallelism.context_parallel_rotate_method", key="layout.cp_comm_type"),
    Argument(name="parallelism.expert_parallel_degree", key="layout.ep"),
    Argument(name="parallelism.expert_tensor_parallel_degree", key="layout.etp"),
    Argument(name="activation_checkpoint.mode", key="layout.recompute"),
    Argument(name="activation_checkpoint.selective_ac_option", key="layout.recompute"),
    Argument(name="compile.enable", key="", note="a note: the stack is compiled"),
    Argument(name="compile.enable_async_tensor_parallel", key="stack.overlap.tensor_chunks"),
    Argument(name="optimizer.name", key="job.optimizer"),
    Argument(name="quantize.linear.float8.recipe_name", key="job.recipe"),
    Argument(name="quantize.linear.float8.enable_fsdp_float8_all_gather", key="job.fp8_parameters"),
)
