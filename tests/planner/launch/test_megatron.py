"""Megatron's arguments, against its own rules and public scripts, by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from planner.launch import ImportOptions, LaunchFile, Tool, export, import_files
from planner.launch.flags import parse_flags
from planner.launch.megatron_checks import refusals
from planner.launch.shell_script import read_script
from simulator.errors import InputError, UnsupportedError
from simulator.parallel.layout import ParallelLayout
from tests.planner.launch.runs import scenario_with

OPTIONS = ImportOptions(cluster="dgx-a100-80gb", nodes=16)
GPT3 = """
GPUS_PER_NODE=8
DISTRIBUTED_ARGS=(--nproc_per_node $GPUS_PER_NODE --nnodes ${NUM_NODES:-16})
MODEL=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048   # learned
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${MODEL[@]} \\
    --micro-batch-size 1 --global-batch-size 1536 --train-iters=1000 --fp16 --lr 6.0e-5 \\
    --tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 --data-path $1
"""


def imported(text: str, **options: Any) -> dict[str, Any]:
    """Return the scenario of a script as a table, and the files beside it by name."""
    import tomllib

    found = import_files([LaunchFile(name="train.sh", text=text)], replace(OPTIONS, **options))
    table = tomllib.loads(found.scenario)
    return table | {file.name: tomllib.loads(file.text) for file in found.files}


def flags_of(layout: ParallelLayout, model: str = "gpt3-175b", **job: Any) -> dict[str, Any]:
    """Return the arguments of an exported script."""
    launch = export(scenario_with(model, "megatron-core", 2, **job), layout, Tool.MEGATRON_LM)
    script = read_script(launch.files[0].text, "train.sh", {})
    return parse_flags(script.commands[-1].arguments)


def test_a_public_script_is_the_run_that_it_starts() -> None:
    table = imported(GPT3, nodes=None)
    assert table["layout"] == {"tp": 8, "pp": 16, "dp": 1}
    assert table["job"]["global_batch_size"] == 1536
    assert table["job"]["precision"] == "fp16"
    assert table["job"]["tokens"] == 1000 * 1536 * 2048
    assert table["cluster"] == {"profile": "dgx-a100-80gb", "nodes": 16}
    model = table["imported-model.toml"]
    # 4 h, GPT-2's vocabulary, biases everywhere: Megatron-LM's defaults.
    assert (model["intermediate_size"], model["vocab_size"]) == (49152, 50257)
    assert (model["mlp_bias"], model["attention_bias"], model["norm_bias"]) == (True, True, True)


def test_what_a_run_does_unlike_its_stack_goes_into_a_stack_of_its_own() -> None:
    stack = imported(GPT3)["imported-stack.toml"]
    assert stack["overlap"]["gradient_reduce"] is False
    assert stack["kernels"]["dropout"] is True
    assert stack["overlap"]["tensor_fraction"] == 0


@pytest.mark.parametrize(
    ("flag", "layout"),
    [
        ("--num-layers-per-virtual-pipeline-stage 2", {"vpp": 3}),
        ("--num-virtual-stages-per-pipeline-rank 3", {"vpp": 3}),
        ("--recompute-activations", {"recompute": "selective"}),
        (
            "--recompute-granularity full --recompute-method block --recompute-num-layers 4",
            {"recompute": "full", "recompute_num_layers": 4, "recompute_method": "block"},
        ),
        (
            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
            {"recompute": "full"},
        ),
        ("--use-distributed-optimizer", {"zero_stage": 1}),
        ("--sequence-parallel", {"sequence_parallel": True}),
        (
            "--pipeline-model-parallel-layout Et*5|(t*6|)*14t*7L",
            {"layers_per_stage": [5, *[6] * 14, 7]},
        ),
        (
            # (94 + 2) / 16 = 6 layers a rank, of which embedding and loss are one each.
            "--num-layers 94 --num-layers-per-virtual-pipeline-stage 1 "
            "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split",
            {"vpp": 6, "layers_per_stage": [0, *[1] * 94, 0]},
        ),
        (
            "--decoder-first-pipeline-num-layers 9 --decoder-last-pipeline-num-layers 3",
            {"layers_per_stage": [9, *[6] * 14, 3]},
        ),
    ],
)
def test_a_flag_of_the_layout_means_what_megatron_means(flag: str, layout: dict[str, Any]) -> None:
    text = GPT3.replace("--fp16", f"--fp16 {flag}")
    assert imported(text)["layout"] == {"tp": 8, "pp": 16, "dp": 1} | layout


def test_the_width_of_swiglu_is_megatrons_default() -> None:
    model = imported(GPT3.replace("--fp16", "--fp16 --swiglu"))["imported-model.toml"]
    # 4 x 12288 x 2 / 3 = 32768, a multiple of 64.
    assert model["intermediate_size"] == 32768


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("--fp16", "--fp16 --bf16", "--bf16: --fp16 and --bf16 cannot both be given"),
        ("--seq-length 2048", "--seq-length 4096", "Megatron-LM itself refuses it: must be at"),
        ("--hidden-size 12288", "--hidden-size wide", "--hidden-size: must be a whole number"),
        ("--num-layers 96", "--num-layers $LAYERS", "--set LAYERS=VALUE"),
        ("--hidden-size 12288", "", "--hidden-size: is needed for a forecast"),
        ("--fp16", "--fp16 --optimizer lion", "--optimizer: is not modelled"),
        ("size 8 ", "size 7 ", "tp x pp x cp = 112 must divide the 128 accelerators"),
        ("--fp16", "--fp16 --tokenizer-type HuggingFaceTokenizer", "--set vocab_size=N"),
        ("--fp16", "--fp16 --hybrid-attention-ratio 0.1", "could change compute or memory"),
        ("--fp16", "--fp16 --recompute-activations --recompute-method block", "selective"),
    ],
)
def test_what_cannot_be_forecast_is_refused_with_its_argument(
    old: str, new: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        imported(GPT3.replace(old, new, 1))
    assert message in str(caught.value)


def test_all_problems_of_a_script_are_told_at_once() -> None:
    text = GPT3.replace("--fp16", "--optimizer lion --hybrid 1").replace("--hidden-size 12288", "")
    with pytest.raises(InputError) as caught:
        imported(text)
    assert len(caught.value.problems) == 3


def test_missing_values_can_be_set_by_the_user() -> None:
    text = GPT3.replace("--num-layers 96", "--num-layers $LAYERS")
    table = imported(text, variables={"LAYERS": "32", "vocab_size": "50304"})
    model = table["imported-model.toml"]
    assert (model["num_hidden_layers"], model["vocab_size"]) == (32, 50304)


@pytest.mark.parametrize(
    ("flags", "kernel"),
    [
        ("--transformer-impl local", "unfused"),
        ("--transformer-impl local --use-flash-attn", "flash"),
        ("--transformer-impl transformer_engine", "flash"),
    ],
)
def test_the_local_implementation_keeps_the_scores(flags: str, kernel: str) -> None:
    stack = imported(GPT3.replace("--fp16", f"--fp16 {flags}"))["imported-stack.toml"]
    assert stack["kernels"]["attention"] == kernel


def test_another_number_of_accelerators_a_node_is_refused() -> None:
    with pytest.raises(InputError, match="dgx-a100-80gb has 8"):
        imported(GPT3.replace("PER_NODE=8", "PER_NODE=4"))


def test_a_shipped_model_is_named_and_not_described_again() -> None:
    layout = ParallelLayout(tp=8, dp=2, sequence_parallel=True)
    launch = export(scenario_with("llama3.1-8b", "megatron-core", 2), layout, Tool.MEGATRON_LM)
    found = import_files(launch.files, replace(OPTIONS, cluster="dgx-h100", nodes=2))
    assert 'model = "llama3.1-8b"' in found.scenario or 'model = "llama3-8b"' in found.scenario
    assert found.files == ()


def test_the_exported_arguments_are_those_of_a_known_recipe() -> None:
    layout = ParallelLayout(tp=8, pp=2, vpp=6, sequence_parallel=True, zero_stage=1)
    flags = flags_of(layout, tokens=64 * 2048 * 10)
    assert flags["tensor_model_parallel_size"] == "8"
    assert flags["num_layers_per_virtual_pipeline_stage"] == "8"
    assert flags["train_iters"] == "10"
    assert {"use_distributed_optimizer", "overlap_grad_reduce", "overlap_param_gather"} <= set(
        flags
    )
    assert "swiglu" not in flags
    assert "untie_embeddings_and_output_weights" not in flags


def test_experts_and_latent_attention_have_their_arguments() -> None:
    layout = ParallelLayout(dp=16, ep=16, etp=1, zero_stage=1)
    flags = flags_of(layout, "deepseek-v3")
    assert flags["moe_layer_freq"] == "[" + ",".join(["0"] * 3 + ["1"] * 58) + "]"
    assert (flags["kv_lora_rank"], flags["qk_head_dim"], flags["qk_pos_emb_head_dim"]) == (
        *("512", "128"),
        "64",
    )
    assert (flags["moe_router_num_groups"], flags["mtp_num_layers"]) == ("8", "1")
    # Without it Megatron-Core leaves out the norms of the latents.
    assert flags["qk_layernorm"]


def test_norms_of_latents_are_not_norms_of_heads() -> None:
    latent = "--multi-latent-attention --qk-layernorm --kv-lora-rank 512"
    latent += " --position-embedding-type rope"
    model = imported(GPT3.replace("--fp16", f"--fp16 {latent}"))["imported-model.toml"]
    assert model["mla"]["kv_lora_rank"] == 512
    assert "qk_norm" not in model


def test_a_rotary_base_is_asked_for_where_there_is_one() -> None:
    assert flags_of(ParallelLayout(dp=16), "llama3.1-8b")["rotary_base"] == "FILL_IN"
    assert "rotary_base" not in flags_of(ParallelLayout(tp=8, pp=2))


def test_uneven_stages_are_spelt_as_a_pipeline_layout() -> None:
    layout = ParallelLayout(pp=2, dp=8, layers_per_stage=(40, 56))
    assert flags_of(layout)["pipeline_model_parallel_layout"] == (
        "E" + "t" * 40 + "|" + "t" * 56 + "L"
    )


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"schedule": "gpipe", "pp": 2}, "layout.schedule"),
        ({"data_parallel": "parameter-server"}, "layout.data_parallel"),
    ],
)
def test_what_megatron_has_no_word_for_is_refused_with_the_nearest(
    changes: dict[str, Any], key: str
) -> None:
    fields = {"dp": 16 // changes.get("pp", 1), **changes}
    layout = ParallelLayout.model_validate_json(json.dumps(fields))
    scenario = scenario_with("gpt3-175b", "torchtitan", 2)
    with pytest.raises(UnsupportedError) as caught:
        export(scenario, layout, Tool.MEGATRON_LM)
    assert key in [problem.key for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"context_parallel_size": 4, "seq_length": 2052}, "seq_length"),
        ({"overlap_param_gather": True, "overlap_grad_reduce": True}, "overlap_param_gather"),
        ({"tp_comm_overlap": True}, "tp_comm_overlap"),
        ({"expert_model_parallel_size": 3, "num_experts": 8}, "expert_model_parallel_size"),
        ({"num_virtual_stages_per_pipeline_rank": 2}, "num_virtual_stages_per_pipeline_rank"),
        ({"optimizer_cpu_offload": True}, "optimizer_cpu_offload"),
        ({"mtp_num_layers": 1}, "mtp_num_layers"),
        ({"fp8_format": "hybrid", "fp4_format": "e2m1"}, "fp4_format"),
        ({"train_iters": 1, "train_samples": 1}, "train_samples"),
        ({"use_precision_aware_optimizer": True}, "use_precision_aware_optimizer"),
        (
            {"cpu_offloading_num_layers": 2, "pipeline_model_parallel_size": 2},
            "cpu_offloading_num_layers",
        ),
        (
            {"cpu_offloading_num_layers": 2, "recompute_granularity": "full"},
            "cpu_offloading_num_layers",
        ),
        (
            {
                "fp8_format": "hybrid",
                "recompute_granularity": "selective",
                "recompute_modules": ["layernorm"],
            },
            "recompute_modules",
        ),
        ({"num_experts": 8, "tensor_model_parallel_size": 2}, "sequence_parallel"),
    ],
)
def test_a_rule_of_validate_args_is_known(settings: dict[str, Any], name: str) -> None:
    assert [found for found, _ in refusals(settings)] == [name]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (
            {"moe_shared_expert_overlap": True, "moe_shared_expert_intermediate_size": 2048},
            "moe_shared_expert_overlap",
        ),
        ({"moe_pad_expert_input_to_capacity": True}, "moe_pad_expert_input_to_capacity"),
        (
            {"overlap_moe_expert_parallel_comm": True, "recompute_granularity": "full"},
            "overlap_moe_expert_parallel_comm",
        ),
        (
            {"overlap_moe_expert_parallel_comm": True, "moe_shared_expert_overlap": True},
            "overlap_moe_expert_parallel_comm",
        ),
        (
            {"overlap_moe_expert_parallel_comm": True, "pipeline_model_parallel_size": 2},
            "overlap_moe_expert_parallel_comm",
        ),
    ],
)
def test_a_rule_about_experts_is_known(settings: dict[str, Any], name: str) -> None:
    experts = {"num_experts": 8, "expert_model_parallel_size": 8}
    dispatched = experts | {"moe_token_dispatcher_type": "flex"}
    assert [found for found, _ in refusals(dispatched | settings)] == [name]
