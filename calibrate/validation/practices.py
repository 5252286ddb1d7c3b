"""What the published recipes of frameworks set, where the tables of their results leave it out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from calibrate.validation.cells import Row
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ContextExchange, RecomputeModule
from simulator.workload.job import Lora, LoraTarget, Recipe

_WIDE = 8192
"""Hidden size from which NeMo's recipes give adapters rank 16 instead of 8 (70B against 8B)."""
_SMALL_RANK, _RANK, _OLD_RANK = 8, 16, 32
_ATTENTION = (LoraTarget.QKV, LoraTarget.PROJ)
SQUAD_TOKENS = 170
"""Tokens of a question with its paragraph: 117 + 11 + 3 words, 1.3 tokens each.

Source: Rajpurkar et al. 2016, SQuAD, dataset statistics.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """The defaults of one framework's recipes."""

    framework: str
    """Pattern of the `framework` column."""
    precision: Dtype = Dtype.BF16
    """Where a row says nothing."""
    narrow: Recipe = Recipe.DELAYED
    """What a bare "fp8" means."""
    narrow_parameters: bool = False
    """Whether fp8 recipes keep and gather weights in 8 bits."""
    expert_tensor: int | None = None
    """Tensor-parallel size of experts; None is tp."""
    context: ContextExchange = ContextExchange.RING
    """How context-parallel ranks reach each other's keys."""
    source: str


_PRACTICES = (
    Practice(
        framework=r"megatron-bridge",
        narrow=Recipe.TENSORWISE,
        narrow_parameters=True,
        expert_tensor=1,
        source="Megatron-Bridge 0.2-0.5 scripts/performance and training/mixed_precision.py",
    ),
    Practice(
        framework=r"megatron-core moe",
        narrow=Recipe.MXFP8,
        narrow_parameters=True,
        expert_tensor=1,
        source="Megatron-MoE-ModelZoo model_configs",
    ),
    Practice(
        framework=r"nemo|megatron-core",
        narrow_parameters=True,
        source="NeMo 24.07-25.02 recipes/precision/mixed_precision.py",
    ),
    Practice(
        framework=r"torchtitan",
        narrow=Recipe.TENSORWISE,
        context=ContextExchange.ALL_GATHER,
        source="torchtitan components/float8.py: dynamic scaling, one scale a tensor; PyTorch "
        "2.6-2.8 torch/distributed/tensor/experimental/_attention.py, _ContextParallelOptions: "
        "balanced, rotate_method = ALL_GATHER",
    ),
    Practice(framework=r"hai-llm", narrow=Recipe.BLOCKWISE, source="DeepSeek-V3, section 3.3.2"),
)
_MLPERF = Practice(
    framework="",
    precision=Dtype.FP8,
    narrow_parameters=True,
    source="MLPerf Training v3.0-v5.1 results, NVIDIA/benchmarks/*/implementations/nemo",
)
_OTHER = Practice(framework="", source="")


def practice_of(row: Row) -> Practice:
    """Return what the framework of a row does by default."""
    if is_mlperf(row):
        return _MLPERF
    framework = row.text("framework")
    found = (p for p in _PRACTICES if re.search(p.framework, framework, re.I))
    return next(found, _OTHER)


def is_mlperf(row: Row) -> bool:
    """Return whether a row is a submission to MLPerf Training."""
    return "mlperf" in f"{row.text('model')} {row.text('source')}".lower()


def adapter_of(row: Row) -> Lora:
    """Return the adapters of a LoRA row, which no table describes; what is taken is noted.

    Source: MLCommons training llama2_70b_lora/README.md (lora_r 16, qkv_proj and o_proj);
    Megatron-Bridge scripts/performance/configs/llama/llama3_llm_finetune.py (target_modules set to
    linear_qkv), recipes/llama (dim 16); NeMo 24.12 recipes/llama3_70b.py and llama3_8b.py with
    performance_mode (dim 16 and 8, linear_qkv); NeMo-Framework-Launcher 24.07 peft/llama2
    (adapter_dim 32, attention_qkv).
    """
    wide = row.known("hidden") and row.integer("hidden") >= _WIDE
    version = row.text("framework_version")
    if is_mlperf(row):
        lora = Lora(rank=_RANK, targets=_ATTENTION)
    elif version.startswith("24.07"):
        lora = Lora(rank=_OLD_RANK, targets=(LoraTarget.QKV,))
    else:
        lora = Lora(rank=_RANK if wide else _SMALL_RANK, targets=(LoraTarget.QKV,))
    row.assume(f"LoRA of rank {lora.rank} on {', '.join(lora.targets)}")
    return lora


def packs_answers(row: Row) -> bool:
    """Return whether a row fine-tunes on packed questions of SQuAD, as NVIDIA's recipes do.

    Source: NeMo 24.07 performance summary ("packed sequence length"); Megatron-Bridge 0.2
    scripts/performance/configs/llama/llama3_llm_finetune.py (packed_sequence=True). MLPerf's
    sequences are one document each (mlcommons/training llama2_70b_lora).
    """
    tuned = re.search(r"\b(sft|lora)\b", row.text("task"), re.I)
    nvidia = re.search(r"nemo|megatron-bridge", row.text("framework"), re.I)
    return bool(tuned and nvidia) and not is_mlperf(row)


def recomputed_modules(row: Row) -> tuple[RecomputeModule, ...]:
    """Return what a recipe recomputes where the row leaves the column blank; empty for nothing.

    Source: Megatron-Bridge 0.2 scripts/performance/configs/deepseek/deepseek_llm_pretrain.py.
    """
    if not _is_bridge_deepseek(row):
        return ()
    latent = (RecomputeModule.MLA_UP_PROJECTION,)
    return (*latent, RecomputeModule.MLP) if "H100" in row.text("hardware") else latent


def hides_expert_exchange(row: Row) -> bool:
    """Return whether another micro-batch computes while tokens travel to their experts.

    The column says it, but for DualPipe, which exists for it, and for DeepSeek-V3 on H100, whose
    recipe sets it (Megatron-Bridge 0.2 deepseek_llm_pretrain.py, set_moe_a2a_overlap_overrides).
    """
    text = row.text("overlap").lower()
    if re.search(r"\bep (all-to-all )?overlap|moe_a2a_overlap", text):
        return True
    if re.search(r"dual-?pipe", row.text("pp_schedule"), re.I):
        return True
    return _is_bridge_deepseek(row) and "H100" in row.text("hardware")


def tensor_overlap(row: Row) -> dict[str, object]:
    """Return how tensor-parallel collectives run beside their own products, where a row tells.

    Async tensor parallelism has a chunk for the tokens of each rank. Megatron-Bridge switches
    tp_comm_overlap off for NVFP4. Source: PyTorch torch/distributed/_symmetric_memory;
    Megatron-Bridge 0.4 scripts/performance/configs/llama/llama3_llm_pretrain.py.
    """
    if re.search(r"async (tp|tensor)", row.text("overlap"), re.I):
        return {"tensor_fraction": 0.0, "tensor_chunks": row.integer("tp", 1)}
    bridge = "bridge" in row.text("framework").lower()
    if bridge and "nvfp4" in row.text("precision").lower():
        return {"tensor_fraction": 0.0}
    return {}


def fuses_experts(row: Row) -> bool:
    """Return whether products, biases and activation of the experts are one kernel.

    Source: Megatron-Bridge 0.5 scripts/performance/configs/gpt_oss
    (cutedsl_fused_grouped_mlp of the FP8_MX presets, which also graph whole iterations).
    """
    bridge = "bridge" in row.text("framework").lower()
    graphed = row.text("cuda_graph").lower().startswith("full")
    return bridge and graphed and "mxfp8" in row.text("precision").lower()


def stage_layers(row: Row, layers: int, stages: int) -> tuple[int, ...] | None:
    """Return the layers of each virtual stage of DeepSeek-V3, 61 of them; None for other models.

    Stages are full but for the last, which has the predicting module and the head; of 32 the first
    has the embedding and one layer and the last none. Source: Megatron-Bridge 0.2
    recipes/deepseek/deepseek_v3.py ("Et*4|(t*4|)*14tmL" for 16 stages, "Et|(tt|)*30mL" for 32).

    >>> row = Row({"framework": "Megatron-Bridge", "model": "DeepSeekV3"})
    >>> stage_layers(row, 61, 8)
    (8, 8, 8, 8, 8, 8, 8, 5)
    """
    if stages == 1 or layers % stages == 0 or not re.search(r"deepseek", row.text("model"), re.I):
        return None
    each = -(-layers // stages)
    rest = layers - each * (stages - 1)
    if rest >= 1:
        return (each,) * (stages - 1) + (rest,)
    first = layers - each * (stages - 2)
    return (first, *(each,) * (stages - 2), 0) if 0 < first <= each else None


def _is_bridge_deepseek(row: Row) -> bool:
    framework, model = row.text("framework").lower(), row.text("model").lower()
    return "bridge" in framework and "deepseek" in model
