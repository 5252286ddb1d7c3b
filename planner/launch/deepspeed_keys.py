"""DeepSpeed's keys, and the flags of Hugging Face's Trainer: which a forecast follows.

Source: DeepSpeed deepspeed/runtime/config.py, runtime/zero/config.py; transformers
src/transformers/training_args.py, integrations/deepspeed.py.
"""

from __future__ import annotations

import re

from planner.launch.records import Argument

AUTO = "auto"
"""DeepSpeed's word for what Hugging Face's Trainer fills in."""
HARMLESS = re.compile(
    r"""
    gradient_clipping|steps_per_print|wall_clock_breakdown|dump_state|memory_breakdown|scheduler\..*
    |optimizer\.params(\..*)?|(fp16|bf16)\.(auto_cast|loss_scale.*|initial_scale.*|hysteresis
    |min_loss_scale|consecutive_hysteresis|immediate_grad_update|check_grad_overflow)
    |(tensorboard|wandb|csv_monitor|comet|flops_profiler|comms_logger|checkpoint|autotuning|elasticity
    |nebula|data_efficiency|curriculum_learning|monitor_config|compression_training|aio)(\..*)?
    |zero_allow_untested_optimizer|zero_force_ds_cpu_optimizer|prescale_gradients
    |gradient_predivide_factor|sparse_gradients|disable_allgather|seed|dataloader_drop_last
    |zero_optimization\.(load_from_fp32_weights|elastic_checkpoint|contiguous_gradients
    |ignore_unused_parameters|legacy_stage1|cpu_offload_use_pin_memory|round_robin_gradients
    |stage3_gather.*|gather_16bit_weights.*|log_trace_cache_warnings|memory_efficient_linear
    |stage3_module_granularity_threshold|sub_group_size|offload_(optimizer|param)\.(pin_memory|nvme_path
    |buffer_.*|fast_init|pipeline_.*|max_in_cpu|ratio))|activation_checkpointing\..*|train
    """,
    re.VERBOSE,
)
NOTED = {
    "the stack says how gradients and parameters are bucketed and prefetched, not this": re.compile(
        r"zero_optimization\.(reduce_bucket_size|allgather_bucket_size|stage3_prefetch_bucket_size"
        r"|stage3_param_persistence_threshold|stage3_model_persistence_threshold|stage3_max_.*"
        r"|allgather_partitions|reduce_scatter|use_all_reduce_for_fetch_params|use_multi_rank.*"
        r"|overlap_reduce_scatter|zeropp.*)"
    ),
}
TRAINER_HARMLESS = re.compile(
    r"""
    (model_name|tokenizer|dataset|train_file|validation|output|overwrite|logging|save|eval|report|seed
    |data|do|run|push|hub|load|resume|warmup|lr|weight|adam|max_grad|num_train|preprocessing|dataloader
    |trust|use_auth|token|cache|ignore_data|metric|log|ddp_timeout|remove|group_by|local_rank|streaming
    |low_cpu|disable|label|include|neftune|fsdp|jit|past|full_determinism|tf32|skip)(_.*)?
    |learning_rate|config_overrides|use_fast_tokenizer|block_size|config_name|model_type
    """,
    re.VERBOSE,
)
ARGUMENTS = (
    Argument(name="train_batch_size", key="job.global_batch_size"),
    Argument(name="train_micro_batch_size_per_gpu", key="layout.micro_batch_size"),
    Argument(name="gradient_accumulation_steps", key="job.global_batch_size"),
    Argument(name="bf16.enabled", key="job.precision"),
    Argument(name="fp16.enabled", key="job.precision"),
    Argument(name="data_types.grad_accum_dtype", key="job.dtypes.gradient"),
    Argument(name="communication_data_type", key="job.dtypes.reduce"),
    Argument(name="optimizer.type", key="job.optimizer"),
    Argument(name="zero_optimization.stage", key="layout.zero_stage"),
    Argument(name="zero_optimization.overlap_comm", key="stack.overlap.gradient_reduce"),
    Argument(name="zero_optimization.offload_optimizer.device", key="layout.optimizer_offload"),
    Argument(name="zero_optimization.offload_optimizer.ratio", key="layout.optimizer_offload"),
    Argument(name="zero_optimization.zero_hpz_partition_size", key="layout.shard_size", note="1"),
    Argument(name="sequence_parallel_size", key="layout.cp", note="cp_comm_type a2a (Ulysses)"),
    Argument(name="tensor_parallel.autotp_size", key="layout.tp"),
    Argument(name="--per_device_train_batch_size", key="layout.micro_batch_size"),
    Argument(name="--gradient_accumulation_steps", key="job.global_batch_size"),
    Argument(name="--gradient_checkpointing", key="layout.recompute", note="full"),
    Argument(name="--block_size", key="job.seq_length", note="and --max_length, --max_seq_length"),
    Argument(name="--max_steps", key="job.tokens"),
    Argument(name="--optim", key="job.optimizer"),
    Argument(name="--config_name", key="model", note="config.json beside it"),
)
