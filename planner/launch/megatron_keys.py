"""Megatron-LM's arguments that a forecast does not follow, and why."""

from __future__ import annotations

import re

HARMLESS = re.compile(
    r"""
    (min_|decoupled_|start_)?(lr|min_lr)(_.*)?|lr_.*|.*_lr|.*weight_decay.*|adam_.*|clip_grad|seed
    |(log|tensorboard|wandb|eval|save|load|ckpt|checkpoint|data|dataset|dataloader|exit|timing|rerun
    |one_logger|straggler|inprocess|result|async|dist_ckpt|non_persistent|use_dist_ckpt|no_load|no_save
    |tokenizer|tiktoken|vocab|merge|valid|test|retro|ft|profile|nvtx|record|pytorch|use_pytorch)(_.*)?
    |mock_data|split|.*_data_path|num_workers|per_split_.*|no_create_attention_mask.*|no_mmap.*
    |num_dataset_builder_threads|reset_.*|eod_mask_loss|s3_.*|finetune|override_opt.*|use_checkpoint.*
    |init_method.*|embedding_init.*|norm_epsilon|layernorm_epsilon|apply_layernorm_1p|rotary_.*
    |use_rope_scaling|rope_.*|.*mscale.*|beta_(fast|slow)|original_max_position.*|no_position_embedding
    |use_mcore_models|manual_gc.*|empty_unused_memory_level|distributed_(backend|timeout.*)|local_rank
    |no_check_for_nan.*|check_for_.*|check_weight_.*|calculate_per_token_loss|loss_scale.*|initial_loss.*
    |hysteresis|moe_router_(topk_scaling_factor|bias_update_rate|pre_softmax|dtype|score_function)
    |moe_input_jitter_eps|moe_per_layer_logging|moe_token_drop_policy|fp8_(margin|interval|amax.*)
    |fp4_recipe|no_one_logger|enable_one_logger|app_tag.*|logging_level|te_rng_tracker|use_cpu_init.*
    |disable_straggler.*|mtp_loss_scaling_factor|deprecated_.*|distrib_optim.*|no_initialization
    |muon_(momentum|scale_mode|no_split_qkv|use_nesterov|tp_mode|extra_scale_factor)|bert_.*|ddp_.*
    |gradient_reduce_div_fusion|overlap_cpu_optimizer_d2h_h2d
    |sft_.*|skip_train|iterations_to_skip|error_injection.*|config_logger_dir|high_priority_stream.*
    |moe_router_force_load_balancing|no_async_tensor_model_parallel_allreduce|trust_remote_code
    |micro_batch_sizes|max_tokens_to_oom|output_bert.*|sharp.*|use_tp_pp_dp_mapping_off
    """,
    re.VERBOSE,
)
"""Names that change neither shapes nor the amount of computing of a step."""

NOTED = {
    "the forecast is of the full batch": re.compile(r"rampup_batch_size"),
    "CUDA graphs take away launch costs that the forecast keeps": re.compile(
        r".*cuda_graphs?(_.*)?"
    ),
    "the stack says which kernels are fused, not this": re.compile(
        r"no_(bias|masked|rope|persist|gradient_accumulation|fp8_wgrad).*|apply_rope_fusion"
        r"|use_flash_attn.*|transformer_impl|use_legacy_models|memory_efficient_layer_norm"
        r"|moe_router_fusion|moe_apply_probs_on_input|cross_entropy_fusion_impl"
        r"|attention_softmax_in_fp32|apply_query_key_layer_scaling|fp32_residual_connection"
        r"|moe_use_legacy_grouped_gemm|openai_gelu|use_transformer_engine_op_fuser|onnx_safe"
    ),
    "not timed apart": re.compile(
        r"moe_z_loss_coeff|deterministic_mode|qk_clip.*|defer_embedding_wgrad_compute"
        r"|wgrad_deferral_limit|delay_wgrad_compute|first_last_layers_bf16"
        r"|num_layers_at_(start|end)_in_bf16|(use_)?nccl_ub|fsdp_.*|moe_deepep_num_sms"
        r"|moe_hybridep_num_sms|overlap_param_gather_with_optimizer_step|align_.*"
        r"|no_overlap_p2p_communication|overlap_p2p_communication.*|batch_p2p_comm.*"
        r"|keep_fp8_transpose_cache.*|fp8_param|fp4_param.*|reuse_grad_buf_for_mxfp8.*"
        r"|(tp_comm|moe_router_padding).*|create_all_gather_group|no_shared_fs|use_sharp"
        r"|(distribute_saved|no_scatter_gather).*|enable_gloo.*|disable_gloo.*|use_ring_exchange.*"
        r"|cpu_offloading_(activations|weights|double_buffering)"
    ),
}
"""Why the forecast leaves a name out -> the names, whose effect is small."""
