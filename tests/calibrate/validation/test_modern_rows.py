"""Reading rows of mixtures of experts, narrow formats, adapters, offload and new schedules."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.jobs import job_of
from calibrate.validation.layouts import layout_of, with_stages
from calibrate.validation.mixtures import experts_of
from calibrate.validation.reported import step_time_of_flops
from calibrate.validation.savers import Savers, savers_of
from calibrate.validation.shapes import model_of
from calibrate.validation.software import Stacks
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ParallelLayout, Recompute, RecomputeModule, ScheduleName
from simulator.workload.job import Dispatcher, LoraTarget, Optimizer, Recipe, TrainingJob
from simulator.workload.model_parts import Experts
from tests.calibrate.validation.tables import MIXTURE, STEP


def row_of(**changes: str) -> Row:
    return Row({**STEP, **changes})


def mixture(**changes: str) -> Row:
    return Row({**MIXTURE, **changes})


def layout(row: Row) -> ParallelLayout:
    return layout_of(row, Stacks().of_step(row), 16)


def job(row: Row) -> TrainingJob:
    return job_of(row, Stacks().of_step(row), layout(row))


def test_the_columns_describe_a_mixture_of_experts() -> None:
    model = model_of(mixture())
    assert model.moe == Experts(
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=512,
        shared_expert_intermediate_size=512,
        dense_layers=(0,),
    )
    assert (model.gated_mlp, model.intermediate_size) == (True, 4096)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model": "Qwen3-Next-80B-A3B"}, "linear attention or state-space layers"),
        ({"model": "Nemotron_3_Super"}, "linear attention or state-space layers"),
        ({"topk": "9"}, "topk: '9' is not at most 8"),
        ({"topk": ""}, "topk: not given"),
        ({"experts": "", "params_b": "10", "active_params_b": "2"}, "experts: not given"),
        ({"dense_layers": "5"}, "dense_layers: '5' is not at most 4"),
        ({"model": "DeepSeek-Z"}, "latent attention is not in the columns"),
    ],
)
def test_what_cannot_be_read_of_a_mixture_is_named(changes: Mapping[str, str], reason: str) -> None:
    with pytest.raises(SkippedRowError, match=reason):
        model_of(mixture(**changes))


def test_a_dense_model_has_no_experts() -> None:
    assert experts_of(row_of(experts="0")) is None


DEEPSEEK: Mapping[str, str] = {
    "model": "deepseekv3 cut to 4 layers",
    "layers": "4",
    "hidden": "7168",
    "ffn_hidden": "18432",
    "heads": "128",
    "kv_heads": "128",
    "experts": "256",
    "topk": "8",
    "moe_ffn_hidden": "2048",
    "vocab_padded": "129280",
}


def test_a_named_model_of_the_same_sizes_is_the_shipped_one() -> None:
    row = mixture(**DEEPSEEK)
    model = model_of(row)
    assert model.mla is not None
    assert model.moe is not None
    assert (model.num_hidden_layers, model.num_nextn_predict_layers) == (4, 0)
    assert model.moe.dense_layers == (0,)
    assert model.tie_word_embeddings
    assert "deepseek-v3 as shipped, with 4 layers" in row.assumed


def test_a_named_model_of_other_sizes_is_what_the_columns_say() -> None:
    row = mixture(model="Mixtral 8x7B")
    assert model_of(row).hidden_size == 1024
    assert any(
        text.startswith("not the shipped mixtral-8x7b: other hidden") for text in row.assumed
    )


def test_latent_attention_of_other_sizes_cannot_be_read() -> None:
    with pytest.raises(SkippedRowError, match="deepseek-v3 has other topk"):
        model_of(mixture(**{**DEEPSEEK, "topk": "4"}))


@pytest.mark.parametrize("name", ["Qwen3_235B_a22B", "Qwen3-235B"])
def test_a_name_may_be_shorter_or_longer_than_the_shipped_one(name: str) -> None:
    sizes = {
        "layers": "94",
        "hidden": "4096",
        "heads": "64",
        "kv_heads": "4",
        "head_dim": "128",
        "experts": "128",
        "topk": "8",
        "moe_ffn_hidden": "1536",
        "shared_experts": "",
        "dense_layers": "",
    }
    row = mixture(model=name, **sizes)
    model_of(row)
    assert "qwen3-235b-a22b as shipped, with 94 layers" in row.assumed


def test_experts_have_their_own_axes() -> None:
    read = layout(mixture())
    assert (read.tp, read.ep, read.etp, read.expert_data_ranks) == (2, 8, 1, 2)


def test_older_releases_cut_experts_along_tp() -> None:
    row = mixture(framework="NeMo/Megatron-Core", ep="4")
    assert (layout(row).etp, layout(row).expert_tp) == (None, 2)
    assert "etp = 2" in row.assumed


@pytest.mark.parametrize(
    ("text", "dtype", "recipe"),
    [
        ("bf16", Dtype.BF16, None),
        ("fp8 (delayed scaling)+bf16", Dtype.FP8, Recipe.DELAYED),
        ("FP8-CS", Dtype.FP8, Recipe.TENSORWISE),
        ("fp8 per-tensor current scaling", Dtype.FP8, Recipe.TENSORWISE),
        ("fp8 rowwise", Dtype.FP8, Recipe.ROWWISE),
        ("MXFP8", Dtype.FP8, Recipe.MXFP8),
        ("NVFP4", Dtype.FP4, Recipe.NVFP4),
        ("FP8", Dtype.FP8, Recipe.TENSORWISE),
        (
            "fp8 alternative recipe (parenthesised: MXFP8 on Blackwell / blockwise on H100)",
            Dtype.FP8,
            Recipe.BLOCKWISE,
        ),
    ],
)
def test_precisions_are_read_with_their_scaling(
    text: str, dtype: Dtype, recipe: Recipe | None
) -> None:
    read = job(mixture(precision=text, hardware="NVIDIA H100 SXM"))
    assert (read.precision, read.recipe) == (dtype, recipe)


def test_the_same_words_mean_another_recipe_on_another_machine() -> None:
    text = "fp8 alternative recipe (parenthesised: MXFP8 on Blackwell / blockwise on H100)"
    assert job(mixture(precision=text, hardware="NVIDIA GB200 (NVL72)")).recipe is Recipe.MXFP8


def test_a_bare_fp8_means_what_the_framework_does() -> None:
    row = row_of(precision="fp8", framework="torchtitan", attention_kernel="flash", tp="1", dp="16",
                 global_batch="64", zero_stage="3")  # fmt: skip
    assert job(row).recipe is Recipe.TENSORWISE
    assert "fp8 scaling = tensorwise" in row.assumed


@pytest.mark.parametrize(
    ("text", "savers"),
    [
        ("none", Savers()),
        ("ACT_CKPT_GRANULARITY=null ACT_CKPT_NUM_LAYERS=null ACT_CKPT_METHOD=null", Savers()),
        ("ACG=full", Savers(recompute=Recompute.FULL)),
        ("full (uniform, 1 layer)", Savers(recompute=Recompute.FULL)),
        ("full: block 3 layers", Savers(recompute=Recompute.FULL, layers=3)),
        ("selective", Savers(recompute=Recompute.SELECTIVE)),
        ("selective: core_attn", Savers(recompute=Recompute.SELECTIVE)),
        ("none; CPU activation offload 40 layers", Savers(offload_layers=40)),
        (
            "selective: RMSNorm and MLA up-projections",
            Savers(
                recompute=Recompute.SELECTIVE,
                modules=(RecomputeModule.LAYERNORM, RecomputeModule.MLA_UP_PROJECTION),
            ),
        ),
        (
            "selective: norm, act, shared_expert",
            Savers(
                recompute=Recompute.SELECTIVE,
                modules=(
                    RecomputeModule.LAYERNORM,
                    RecomputeModule.MOE_ACTIVATION,
                    RecomputeModule.SHARED_EXPERTS,
                ),
            ),
        ),
    ],
)
def test_recomputation_and_offload_are_read(text: str, savers: Savers) -> None:
    assert savers_of(row_of(recompute=text)) == savers


@pytest.mark.parametrize("text", ["selective: embeddings", "remat_policy=custom"])
def test_unknown_recomputation_is_refused(text: str) -> None:
    with pytest.raises(SkippedRowError, match="recompute: "):
        savers_of(row_of(recompute=text))


def test_an_offloaded_optimizer_is_read() -> None:
    assert savers_of(row_of(optimizer="CPU-offloaded AdamW")).optimizer_offload == 1


@pytest.mark.parametrize(
    ("text", "optimizer"),
    [
        ("AdamW 8-bit", Optimizer.ADAM_8BIT),
        ("Adafactor", Optimizer.ADAFACTOR),
        ("Muon (Adam for the rest)", Optimizer.MUON),
        ("SGD with momentum", Optimizer.SGD_MOMENTUM),
    ],
)
def test_optimizers_are_read(text: str, optimizer: Optimizer) -> None:
    assert job(row_of(optimizer=text)).optimizer is optimizer


def test_moments_in_bf16_are_read() -> None:
    assert job(row_of(optimizer="AdamW, bf16 moments")).dtypes.state is Dtype.BF16


@pytest.mark.parametrize(
    ("changes", "rank", "targets"),
    [
        (
            {"model": "Llama 2 70B LoRA (MLPerf)", "hardware": "NVIDIA H100-SXM5-80GB"},
            16,
            (LoraTarget.QKV, LoraTarget.PROJ),
        ),
        ({"framework": "Megatron-Bridge"}, 8, (LoraTarget.QKV,)),
        ({"framework": "NeMo/Megatron-Core", "hidden": "8192"}, 16, (LoraTarget.QKV,)),
        ({"framework": "NeMo", "framework_version": "24.07"}, 32, (LoraTarget.QKV,)),
    ],
)
def test_adapters_are_those_of_the_published_recipes(
    changes: Mapping[str, str], rank: int, targets: tuple[LoraTarget, ...]
) -> None:
    row = row_of(**{"task": "lora", "attention_kernel": "", "sequence_parallel": "", **changes})
    lora = job(row).lora
    assert lora is not None
    assert (lora.rank, lora.targets) == (rank, targets)
    assert any(text.startswith(f"LoRA of rank {rank}") for text in row.assumed)


def test_fine_tuning_packs_short_documents_and_mlperf_long_ones() -> None:
    nemo = job(row_of(task="sft", framework="NeMo/Megatron-Core", attention_kernel="flash"))
    mlperf = job(row_of(task="lora", model="Llama 2 70B LoRA (MLPerf)", attention_kernel=""))
    assert (nemo.document_length, mlperf.document_length) == (170, None)


@pytest.mark.parametrize(
    ("changes", "dispatcher", "capacity"),
    [
        ({}, Dispatcher.ALL_TO_ALL, None),
        ({"overlap": "dispatcher DeepEP"}, Dispatcher.FLEX, None),
        ({"model": "a mixture (tokendrop)"}, Dispatcher.ALL_TO_ALL, 1.0),
        ({"notes": "expert capacity factor 1.5 padded"}, Dispatcher.ALL_TO_ALL, 1.5),
        ({"notes": "expert load force-balanced, token-dropless"}, Dispatcher.ALL_TO_ALL, None),
    ],
)
def test_routing_is_read(
    changes: Mapping[str, str], dispatcher: Dispatcher, capacity: float | None
) -> None:
    read = job(mixture(**changes)).moe
    assert (read.dispatcher, read.capacity_factor, read.load_imbalance) == (dispatcher, capacity, 1)


def test_the_exchange_with_experts_is_hidden_only_where_the_row_says_so() -> None:
    hidden = job(mixture(overlap="EP all-to-all overlap; dispatcher hybridep"))
    shown = job(mixture(overlap="dispatcher hybridep"))
    assert (hidden.moe.overlap, shown.moe.overlap) == (True, False)


@pytest.mark.parametrize(
    ("text", "vpp", "schedule"),
    [
        ("ZB-1p", "1", ScheduleName.ZERO_BUBBLE_H1),
        ("ZB-V", "2", ScheduleName.ZERO_BUBBLE_V),
        ("DualPipe", "1", ScheduleName.DUALPIPE),
        ("DualPipeV", "2", ScheduleName.DUALPIPE_V),
        ("LoopedBFS", "2", ScheduleName.LOOPED_BFS),
        ("interleaved 1f1b", "2", ScheduleName.INTERLEAVED),
    ],
)
def test_new_schedules_are_read(text: str, vpp: str, schedule: ScheduleName) -> None:
    row = row_of(pp_schedule=text, pp="4", vpp=vpp, dp="2", grad_accum="8")
    assert layout(row).schedule is schedule


@pytest.mark.parametrize("text", ["ZB-2p*", "v-half", "V-Min"])
def test_schedules_that_are_not_modelled_are_named(text: str) -> None:
    with pytest.raises(SkippedRowError, match=r"pp_schedule: .* is not modelled"):
        layout(row_of(pp_schedule=text, pp="4", vpp="2", dp="2", grad_accum="8"))


def test_an_interleaved_schedule_without_chunks_has_two() -> None:
    row = row_of(pp_schedule="interleaved 1f1b", pp="4", vpp="", dp="2", grad_accum="8")
    assert layout(row).vpp == 2
    assert "vpp = 2" in row.assumed


@pytest.mark.parametrize(
    ("pp", "vpp", "split"),
    [
        (4, 1, (16, 16, 16, 13)),
        (4, 4, (4,) * 15 + (1,)),
        (8, 4, (1, *(2,) * 30, 0)),
    ],
)
def test_the_stages_of_61_layers_are_those_of_the_recipe(
    pp: int, vpp: int, split: tuple[int, ...]
) -> None:
    whole = ParallelLayout(pp=pp, vpp=vpp)
    assert with_stages(mixture(model="DeepSeekV3"), whole, 61).layers_per_stage == split


def test_sharded_copies_may_be_smaller_than_all_data_ranks() -> None:
    notes = "zero1 group size 8; micro_num 4"
    row = row_of(framework="InternEvo", notes=notes, tp="1", dp="16", global_batch="64",
                 attention_kernel="flash", zero_stage="1")  # fmt: skip
    assert layout(row).shard_size == 8


def test_submissions_to_mlperf_are_told_apart_by_their_hardware() -> None:
    mlperf = {"model": "GPT-3 175B (MLPerf)", "attention_kernel": "", "framework": "PyTorch"}
    stacks = Stacks()
    assert stacks.of_step(row_of(**mlperf)).name == "mlperf-nemo"
    assert stacks.of_step(row_of(**mlperf, hardware="AMD MI325X")).name == "mlperf-amd"
    with pytest.raises(SkippedRowError, match="no stack file for 'MLPerf Habana, PyTorch'"):
        stacks.of_step(row_of(**mlperf, hardware="Habana Gaudi2"))


def test_a_step_time_follows_from_the_flops_that_megatron_prints() -> None:
    row = row_of(
        tflops_per_gpu_reported="2", tflops_convention="Megatron model FLOPs (--log-throughput)"
    )
    hidden, width, length, vocabulary = 1024, 4096, 1024, 50304
    layer = 4 * hidden**2 + length * hidden + 2 * hidden * width
    flops = 6 * (4 * layer + vocabulary * hidden) * 32 * length
    assert step_time_of_flops(row, model_of(row_of())) == pytest.approx(flops / (2e12 * 16))


def test_flops_of_another_convention_give_no_step_time() -> None:
    row = row_of(tflops_per_gpu_reported="2", tflops_convention="formula not printed")
    assert step_time_of_flops(row, model_of(row_of())) is None
