"""nanotron's keys: which a forecast follows, and which do not matter.

Source: nanotron src/nanotron/config/{config,parallelism_config,models_config}.py.
"""

from __future__ import annotations

import re

from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ScheduleName

ENGINES = {"1f1b": ScheduleName.ONE_F_ONE_B, "afab": ScheduleName.GPIPE}
DTYPES = {"bfloat16": Dtype.BF16, "float16": Dtype.FP16, "float32": Dtype.FP32}
MODEL = {
    "num_hidden_layers": "num_hidden_layers",
    "hidden_size": "hidden_size",
    "intermediate_size": "intermediate_size",
    "num_attention_heads": "num_attention_heads",
    "num_key_value_heads": "num_key_value_heads",
    "vocab_size": "vocab_size",
    "max_position_embeddings": "max_position_embeddings",
    "sliding_window_size": "sliding_window",
}
EXPERTS = (
    "nanotron's experts (moe_config of its Qwen2 table) are experimental, and its stack here was "
    "measured with dense models alone"
)
"""Why they are neither written nor read."""
SETTINGS = {
    "tokens.sequence_length": "job.seq_length",
    "tokens.micro_batch_size": "layout.micro_batch_size",
    "tokens.batch_accumulation_per_replica": "job.global_batch_size",
    "tokens.train_steps": "job.tokens",
    "parallelism.dp": "layout.dp",
    "parallelism.tp": "layout.tp",
    "parallelism.pp": "layout.pp",
    "parallelism.context_parallel_size": "layout.cp",
    "parallelism.expert_parallel_size": "layout.ep",
    "parallelism.pp_engine": "layout.schedule",
    "parallelism.tp_mode": "layout.sequence_parallel",
    "parallelism.recompute_layer": "layout.recompute",
    "optimizer.zero_stage": "layout.zero_stage",
    "optimizer.accumulate_grad_in_fp32": "job.dtypes.gradient",
    "optimizer.optimizer_factory.name": "job.optimizer",
    "model.dtype": "job.precision",
    "model.make_vocab_size_divisible_by": "job.make_vocab_size_divisible_by",
    **{f"model.model_config.{name}": f"model.{key}" for name, key in MODEL.items()},
    "model.model_config.hidden_act": "model.activation",
    "model.model_config.tie_word_embeddings": "model.tie_word_embeddings",
    "model.model_config.attention_bias": "model.attention_bias",
}
"""Key of the file -> key of a scenario."""
HARMLESS = re.compile(
    r"""
    (checkpoints|data_stages|data|general|lighteval|logging|profiler|s3_upload|tokenizer)(\..*)?
    |model\.(init_method.*|ddp_bucket_cap_mb)|optimizer\.(clip_grad|learning_rate_scheduler.*)
    |optimizer\.(weight_decay.*|adam_.*|torch_adam_is_fused)
    |optimizer\.optimizer_factory\.(adam_.*|torch_adam_is_fused)
    |tokens\.(limit_.*|val_check_interval)|parallelism\.(tp_recompute_allgather|moe_layer_recompute)
    |model\.model_config\.(_attn_implementation|.*token_id|initializer_range|.*rotary|is_\w+_config
    |pretraining_tp|rms_norm_eps|rope_.*|use_cache|z_loss.*|flex_attention_mask|_fused.*|_use_.*)
    |metrics_logging(\..*)?
    """,
    re.VERBOSE,
)
NOTED = {
    "not timed apart": re.compile(r"parallelism\.tp_linear_async_communication"),
}
