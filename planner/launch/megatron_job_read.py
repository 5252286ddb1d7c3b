"""Reads a job, and what its stack overlaps, from Megatron's arguments.

Source: as `planner.launch.megatron_job`.
"""

from __future__ import annotations

from typing import Any

from planner.launch.keys import Keys
from planner.launch.megatron_job import DROPOUT
from simulator.hardware.accelerator import Dtype
from simulator.workload.job import Dispatcher, Optimizer, Recipe
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import AttentionKernel

_RECIPES = {
    recipe.value: recipe
    for recipe in (Recipe.DELAYED, Recipe.TENSORWISE, Recipe.BLOCKWISE, Recipe.MXFP8)
}
_DISPATCHERS = {dispatcher.value: dispatcher for dispatcher in Dispatcher}
_OPTIMIZERS = {
    "adam": Optimizer.ADAM,
    "sgd": Optimizer.SGD_MOMENTUM,
    "muon": Optimizer.MUON,
    "dist_muon": Optimizer.MUON,
}
_DTYPES = {"fp32": Dtype.FP32, "bf16": Dtype.BF16, "fp16": Dtype.FP16, "fp8": Dtype.FP8}
_AUXILIARY = {"aux_loss": True, "seq_aux_loss": True, "global_aux_loss": True, "none": False}
_BACKENDS = {
    "auto": AttentionKernel.FLASH,
    "flash": AttentionKernel.FLASH,
    "fused": AttentionKernel.FLASH,
    "unfused": AttentionKernel.UNFUSED,
    "local": AttentionKernel.UNFUSED,
}
_VOCABULARY_MULTIPLE = 128
"""Megatron-LM's default of --make-vocab-size-divisible-by."""


def read_job(keys: Keys, stack: Stack, layout: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a job; `layout` has the replicas that a missing batch is made of."""
    keys.need("seq_length")
    batch = keys.whole("global_batch_size", layout["micro_batch_size"] * layout["dp"])
    length = keys.whole("seq_length", 1)
    found: dict[str, Any] = {"global_batch_size": batch, "seq_length": length}
    samples = keys.whole("train_samples")
    steps = keys.whole("train_iters")
    if steps is not None:
        samples = steps * batch
    if samples is not None:
        found["tokens"] = samples * length
    multiple = keys.whole("make_vocab_size_divisible_by", _VOCABULARY_MULTIPLE)
    found["make_vocab_size_divisible_by"] = multiple
    found |= _read_precision(keys)
    found |= _read_optimizer(keys, stack)
    if keys.given("num_experts"):
        found["moe"] = _read_routing(keys)
    return found


def _read_precision(keys: Keys) -> dict[str, Any]:
    fp16, bf16 = keys.flag("fp16"), keys.flag("bf16")
    fp8, fp4 = keys.take("fp8_format"), keys.take("fp4_format")
    recipe = keys.word("fp8_recipe", _RECIPES, Recipe.DELAYED)
    fp4_recipe = keys.word("fp4_recipe", {"nvfp4": Recipe.NVFP4}, Recipe.NVFP4)
    parameters = keys.flag("fp8_param_gather")
    if fp16 and bf16:
        keys.complain("bf16", "--fp16 and --bf16 cannot both be given")
    if fp8 is not None:
        narrow = {"precision": "fp8", "recipe": recipe.value}
        return {**narrow, "fp8_parameters": parameters}
    if fp4 is not None:
        return {"precision": "fp4", "recipe": fp4_recipe.value}
    return {"precision": "fp16" if fp16 else "bf16" if bf16 else "fp32"}


def _read_optimizer(keys: Keys, stack: Stack) -> dict[str, Any]:
    kind = keys.word("optimizer", _OPTIMIZERS, Optimizer.ADAM)
    momentum = keys.real("sgd_momentum", 1.0, least=0)
    if kind is Optimizer.SGD_MOMENTUM and momentum == 0:
        kind = Optimizer.SGD
    aware = keys.flag("use_precision_aware_optimizer")
    narrow = keys.flag("grad_reduce_in_bf16")
    main = keys.word("main_grads_dtype", _DTYPES, Dtype.FP32)
    dtypes: dict[str, str] = {}
    gradient = Dtype.BF16 if narrow or (aware and main is Dtype.BF16) else Dtype.FP32
    wide = keys.flag("accumulate_allreduce_grads_in_fp32")
    if keys.flag("fp16") and not wide:
        # Source: `validate_args`: fp32 gradients are the default of bf16 alone.
        gradient = Dtype.FP16
    if gradient.bytes != stack.numerics.gradient_bytes:
        dtypes |= {"gradient": gradient.value, "reduce": gradient.value}
    master = keys.word("main_params_dtype", _DTYPES, Dtype.FP32)
    first = keys.word("exp_avg_dtype", _DTYPES, Dtype.FP32)
    second = keys.word("exp_avg_sq_dtype", _DTYPES, Dtype.FP32)
    if first is not second:
        keys.wrong("exp_avg_sq_dtype", "states of different formats are not modelled")
    if aware and master is not Dtype.FP32:
        dtypes["master"] = master.value
    if aware and first is not Dtype.FP32:
        dtypes["state"] = first.value
    return {"optimizer": kind.value, **({"dtypes": dtypes} if dtypes else {})}


def _read_routing(keys: Keys) -> dict[str, Any]:
    keys.take("moe_enable_deepep")
    keys.take("moe_flex_dispatcher_backend")
    kinds = keys.values.get("moe_router_load_balancing_type")
    if isinstance(kinds, list):
        keys.values["moe_router_load_balancing_type"] = "aux_loss"
    balanced = keys.word("moe_router_load_balancing_type", _AUXILIARY, default=True)
    keys.take("moe_aux_loss_coeff")
    coefficient = str(keys.values.get("moe_aux_loss_coeff") or 0)
    off = not coefficient.replace(".", "").strip("0")
    dispatcher = keys.word("moe_token_dispatcher_type", _DISPATCHERS, Dispatcher.ALL_GATHER)
    found: dict[str, Any] = {
        "dispatcher": dispatcher.value,
        "aux_loss": balanced and not off,
        "overlap": keys.flag("overlap_moe_expert_parallel_comm"),
    }
    capacity = keys.real("moe_expert_capacity_factor")
    padded = keys.flag("moe_pad_expert_input_to_capacity")
    if capacity is not None and capacity > 0:
        found["capacity_factor"] = capacity
        if not padded:
            rule = "tokens dropped without padding to the capacity are not modelled"
            keys.wrong("moe_expert_capacity_factor", rule, "add moe_pad_expert_input_to_capacity")
    return found


def read_stack(keys: Keys, stack: Stack, layout: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of `stack` that a run does otherwise, such as "overlap.gradient_reduce"."""
    overlap, kernels = stack.overlap, stack.kernels
    dropouts = [
        keys.real(f"{kind}_dropout", DROPOUT, least=0, most=1) for kind in ("attention", "hidden")
    ]
    fused = keys.flag("tp_comm_overlap")
    backend = keys.word("attention_backend", _BACKENDS, AttentionKernel.FLASH)
    flash = keys.flag("use_flash_attn")
    if keys.take("transformer_impl") == "local" and not flash:
        # Source: core/models/gpt/gpt_layer_specs.py: its core attention is DotProductAttention.
        backend = AttentionKernel.UNFUSED
    done: dict[str, tuple[Any, Any]] = {
        "overlap.gradient_reduce": (keys.flag("overlap_grad_reduce"), overlap.gradient_reduce),
        "kernels.fused_loss": (keys.flag("cross_entropy_loss_fusion"), kernels.fused_loss),
        "kernels.dropout": (any(dropouts), kernels.dropout),
        "kernels.attention": (backend.value, kernels.attention.value),
    }
    gathers = keys.flag("overlap_param_gather")
    if layout.get("zero_stage"):
        done["overlap.parameter_gather"] = (gathers, overlap.parameter_gather)
    if layout.get("tp", 1) > 1 and not fused and overlap.tensor_fraction:
        done["overlap.tensor_fraction"] = (0.0, overlap.tensor_fraction)
    if layout.get("tp", 1) > 1 and fused and not overlap.tensor_fraction:
        keys.notes.append(
            f"tp_comm_overlap: the stack {stack.name} does not have it, so tp is slow"
        )
    if keys.given("num_experts"):
        grouped, permuted = keys.flag("moe_grouped_gemm"), keys.flag("moe_permute_fusion")
        shared = keys.flag("moe_shared_expert_overlap")
        done["kernels.grouped_gemm"] = (grouped, kernels.grouped_gemm)
        done["kernels.fused_permute"] = (permuted, kernels.fused_permute)
        done["overlap.shared_expert"] = (shared, overlap.shared_expert)
    return {key: here for key, (here, usual) in done.items() if here != usual}
