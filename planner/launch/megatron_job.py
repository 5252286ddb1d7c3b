"""A job, and what its stack overlaps, in Megatron's arguments, and back.

Source: Megatron-LM megatron/training/arguments.py (`_add_mixed_precision_args`, `_add_moe_args`,
`_add_transformer_engine_args`, `validate_args`), core 0.16.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from planner.launch.records import BF16_BYTES, Argument, Run
from simulator.hardware.accelerator import Dtype
from simulator.parallel.numbers import with_dtypes
from simulator.workload.job import Dispatcher, Optimizer, Recipe, TrainingJob
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import AttentionKernel

DROPOUT = 0.1
"""Megatron-LM's default of attention and hidden dropout."""
JOB_ARGUMENTS = (
    Argument(name="global_batch_size", key="job.global_batch_size"),
    Argument(name="seq_length", key="job.seq_length"),
    Argument(name="train_iters", key="job.tokens"),
    Argument(name="train_samples", key="job.tokens"),
    Argument(name="make_vocab_size_divisible_by", key="job.make_vocab_size_divisible_by"),
    Argument(name="bf16", key="job.precision"),
    Argument(name="fp16", key="job.precision"),
    Argument(name="fp8_format", key="job.precision"),
    Argument(name="fp8_recipe", key="job.recipe"),
    Argument(name="fp8_param_gather", key="job.fp8_parameters"),
    Argument(name="fp4_format", key="job.precision"),
    Argument(name="optimizer", key="job.optimizer"),
    Argument(name="sgd_momentum", key="job.optimizer"),
    Argument(name="grad_reduce_in_bf16", key="job.dtypes.gradient"),
    Argument(name="accumulate_allreduce_grads_in_fp32", key="job.dtypes.gradient"),
    Argument(name="main_grads_dtype", key="job.dtypes.gradient"),
    Argument(name="main_params_dtype", key="job.dtypes.master"),
    Argument(name="exp_avg_dtype", key="job.dtypes.state"),
    Argument(name="exp_avg_sq_dtype", key="job.dtypes.state"),
    Argument(name="moe_token_dispatcher_type", key="job.moe.dispatcher"),
    Argument(name="moe_expert_capacity_factor", key="job.moe.capacity_factor"),
    Argument(name="overlap_moe_expert_parallel_comm", key="job.moe.overlap"),
    Argument(name="moe_router_load_balancing_type", key="job.moe.aux_loss"),
    Argument(name="moe_aux_loss_coeff", key="job.moe.aux_loss"),
    Argument(name="overlap_grad_reduce", key="stack.overlap.gradient_reduce"),
    Argument(name="overlap_param_gather", key="stack.overlap.parameter_gather"),
    Argument(name="tp_comm_overlap", key="stack.overlap.tensor_fraction"),
    Argument(name="moe_shared_expert_overlap", key="stack.overlap.shared_expert"),
    Argument(name="cross_entropy_loss_fusion", key="stack.kernels.fused_loss"),
    Argument(name="attention_dropout", key="stack.kernels.dropout"),
    Argument(name="hidden_dropout", key="stack.kernels.dropout"),
    Argument(name="attention_backend", key="stack.kernels.attention"),
    Argument(name="moe_grouped_gemm", key="stack.kernels.grouped_gemm"),
    Argument(name="moe_permute_fusion", key="stack.kernels.fused_permute"),
)


def job_settings(run: Run) -> dict[str, Any]:
    """Return what says the job of a run to Megatron, and what its stack overlaps."""
    job = run.job
    steps = None if job.tokens is None else ceil(job.tokens / job.tokens_per_step)
    return {
        "global_batch_size": job.global_batch_size,
        "seq_length": job.seq_length,
        "train_iters": steps,
        "make_vocab_size_divisible_by": job.make_vocab_size_divisible_by,
        **_precision(job),
        **_optimizer(run),
        **(_routing(job, run.stack) if run.model.moe else {}),
        **_stack_settings(run),
    }


def _precision(job: TrainingJob) -> dict[str, Any]:
    fp8, fp4 = job.precision is Dtype.FP8, job.precision is Dtype.FP4
    recipe = job.effective_recipe
    fine = recipe in (Recipe.MXFP8, Recipe.BLOCKWISE)
    return {
        "fp16": job.precision is Dtype.FP16,
        "bf16": fp8 or fp4 or job.precision is Dtype.BF16,
        "fp8_format": ("e4m3" if fine else "hybrid") if fp8 else None,
        "fp8_recipe": recipe.value if fp8 and recipe else None,
        "fp8_param_gather": job.fp8_parameters,
        "fp4_format": "e2m1" if fp4 else None,
        "fp4_recipe": recipe.value if fp4 and recipe else None,
    }


def _optimizer(run: Run) -> dict[str, Any]:
    job, dtypes = run.job, run.job.dtypes
    name = {Optimizer.ADAM: "adam", Optimizer.MUON: "muon"}.get(job.optimizer)
    plain = job.optimizer in (Optimizer.SGD, Optimizer.SGD_MOMENTUM)
    aware = dtypes.master is not None or dtypes.state is not None
    numerics = with_dtypes(run.stack, job).numerics
    state = dtypes.state.value if dtypes.state else None
    return {
        "optimizer": "sgd" if plain else name,
        "sgd_momentum": "0.0" if job.optimizer is Optimizer.SGD else None,
        "grad_reduce_in_bf16": job.precision is not Dtype.FP16
        and numerics.gradient_bytes == BF16_BYTES,
        "accumulate_allreduce_grads_in_fp32": job.precision is Dtype.FP16
        and numerics.gradient_bytes > BF16_BYTES,
        "ckpt_format": "torch" if name == "muon" else None,
        "use_precision_aware_optimizer": aware or run.layout.optimizer_offload > 0,
        "main_params_dtype": dtypes.master.value if dtypes.master else None,
        "exp_avg_dtype": state,
        "exp_avg_sq_dtype": state,
    }


def _routing(job: TrainingJob, stack: Stack) -> dict[str, Any]:
    moe, flex = job.moe, job.moe.dispatcher is Dispatcher.FLEX
    return {
        "moe_token_dispatcher_type": moe.dispatcher.value,
        "moe_enable_deepep": flex,
        "moe_expert_capacity_factor": moe.capacity_factor,
        "moe_pad_expert_input_to_capacity": moe.capacity_factor is not None,
        "overlap_moe_expert_parallel_comm": moe.overlap,
        "moe_router_load_balancing_type": "aux_loss" if moe.aux_loss else "none",
        "moe_grouped_gemm": stack.kernels.grouped_gemm,
        "moe_permute_fusion": stack.kernels.fused_permute,
        "moe_shared_expert_overlap": stack.overlap.shared_expert,
    }


def _stack_settings(run: Run) -> dict[str, Any]:
    overlap, kernels, layout = run.stack.overlap, run.stack.kernels, run.layout
    dropout = str(DROPOUT) if kernels.dropout else "0.0"
    flash = kernels.attention is AttentionKernel.FLASH
    return {
        "overlap_grad_reduce": overlap.gradient_reduce,
        "overlap_param_gather": overlap.parameter_gather
        and overlap.gradient_reduce
        and layout.zero_stage > 0,
        "tp_comm_overlap": overlap.tensor_fraction > 0
        and layout.tp > 1
        and layout.sequence_parallel,
        "cross_entropy_loss_fusion": kernels.fused_loss,
        "attention_dropout": dropout,
        "hidden_dropout": dropout,
        "attention_backend": None if flash else "unfused",
    }
