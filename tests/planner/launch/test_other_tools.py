"""torchtitan, DeepSpeed, nanotron and Megatron-Bridge, against public configurations, by hand."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from typing import Any

import pytest
import yaml

from planner.launch import ImportOptions, LaunchFile, Tool, export, import_files
from planner.launch.shell_script import read_script
from simulator.errors import InputError, UnsupportedError
from simulator.parallel.layout import ContextExchange, ParallelLayout
from tests.planner.launch.runs import scenario_with

OPTIONS = ImportOptions(cluster="dgx-h100", nodes=8)
TITAN = """
[model]
name = "llama3"
flavor = "70B"
hf_assets_path = "./assets/hf/Llama-3.1-70B"
[optimizer]
name = "AdamW"
lr = 1.5e-4
[training]
local_batch_size = 8
seq_len = 8192
steps = 1000
dataset = "c4"
[parallelism]
data_parallel_replicate_degree = 1
data_parallel_shard_degree = -1
tensor_parallel_degree = 8
pipeline_parallel_degree = 1
[activation_checkpoint]
mode = "full"
[compile]
enable = true
"""
ZERO = {
    "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto",
    "gradient_clipping": "auto",
    "bf16": {"enabled": "auto"},
    "zero_optimization": {
        "stage": 3,
        "overlap_comm": True,
        "reduce_bucket_size": "auto",
        "offload_optimizer": {"device": "cpu", "pin_memory": True},
    },
}
TRAINER = """
deepspeed --num_gpus 8 run_clm.py --deepspeed ds.json --model_name_or_path meta-llama/L \\
  --per_device_train_batch_size 2 --gradient_accumulation_steps 4 --bf16 True --block_size 4096 \\
  --gradient_checkpointing True --max_steps 100 --output_dir out
"""
NANOTRON = """
general: {project: debug, run: tiny, seed: 42}
model:
  dtype: bfloat16
  make_vocab_size_divisible_by: 1
  init_method: {std: 0.025}
  model_config:
    is_llama_config: true
    hidden_act: silu
    hidden_size: 2048
    intermediate_size: 8192
    num_attention_heads: 32
    num_hidden_layers: 16
    num_key_value_heads: 8
    tie_word_embeddings: true
    vocab_size: 128256
    max_position_embeddings: 4096
    rope_theta: 500000.0
optimizer: {accumulate_grad_in_fp32: true, clip_grad: 1.0, zero_stage: 0}
parallelism: {dp: 8, pp: 2, tp: 4, pp_engine: 1f1b, tp_mode: REDUCE_SCATTER}
tokens:
  batch_accumulation_per_replica: 4
  micro_batch_size: 2
  sequence_length: 4096
  train_steps: 15
"""
BRIDGE = """
torchrun --nproc_per_node 8 --nnodes 8 run_recipe.py --recipe qwen3_30b_a3b_pretrain_config \\
  model.tensor_model_parallel_size=2 model.pipeline_model_parallel_size=1 \\
  model.context_parallel_size=1 model.expert_model_parallel_size=8 model.sequence_parallel=True \\
  train.global_batch_size=512 train.micro_batch_size=1 model.seq_length=4096 \\
  mixed_precision=bf16_with_fp8_current_scaling_mixed ddp.use_distributed_optimizer=True
"""


def imported(name: str, text: str, *more: LaunchFile, **options: Any) -> dict[str, Any]:
    files = [LaunchFile(name=name, text=text), *more]
    return tomllib.loads(import_files(files, replace(OPTIONS, **options)).scenario)


def test_a_torchtitan_file_is_its_run() -> None:
    table = imported("llama3_70b.toml", TITAN)
    assert table["model"] == "llama3.1-70b"
    # 64 GPUs: 8 of them for tp, 8 shards; the batch is 8 sequences a shard.
    assert table["layout"] == {
        "tp": 8,
        "dp": 8,
        "micro_batch_size": 8,
        "sequence_parallel": True,
        "zero_stage": 3,
        "recompute": "full",
    }
    assert table["job"]["global_batch_size"] == 64
    assert table["job"]["tokens"] == 1000 * 64 * 8192


def test_torchtitans_older_names_are_read() -> None:
    old = TITAN.replace("local_batch_size", "batch_size").replace("[compile]\nenable = true", "")
    assert imported("x.toml", old)["layout"] == imported("x.toml", TITAN)["layout"]


def test_hybrid_shards_are_replicas_of_shards() -> None:
    text = TITAN.replace("replicate_degree = 1", "replicate_degree = 4").replace("= 8\np", "= 1\np")
    layout = imported("x.toml", text)["layout"]
    assert (layout["dp"], layout["shard_size"]) == (64, 16)


def test_torchtitans_stages_follow_its_layers_a_stage() -> None:
    text = TITAN.replace(
        "pipeline_parallel_degree = 1",
        'pipeline_parallel_degree = 4\npipeline_parallel_schedule = "Interleaved1F1B"\n'
        "pipeline_parallel_layers_per_stage = 7",
    )
    layout = imported("x.toml", text)["layout"]
    # (80 layers + 2 ends) / 7 is 12 stages, 3 for each of 4 ranks.
    assert layout["vpp"] == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("70B", "7B", "no counterpart among the shipped ones"),
        ("shard_degree = -1", "shard_degree = 4", "degrees multiply to 32"),
        ('"full"', '"memory_budget"', "activation_checkpoint.mode: is not modelled"),
        ("steps = 1000", 'dtype = "bfloat16"', "that are all in 16 bits"),
        ("seq_len", "seq_len_new", "could change compute or memory"),
    ],
)
def test_what_torchtitan_asks_and_is_not_modelled_is_refused(
    old: str, new: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        imported("x.toml", TITAN.replace(old, new, 1))
    assert message in str(caught.value)


def test_a_model_outside_torchtitans_registry_is_refused() -> None:
    scenario = scenario_with("gpt3-175b", "torchtitan", 2)
    with pytest.raises(UnsupportedError, match="takes its models from a registry"):
        export(scenario, ParallelLayout(dp=16, zero_stage=3), Tool.TORCHTITAN)


def test_the_trainer_fills_in_what_deepspeed_leaves_to_it() -> None:
    script = LaunchFile(name="train.sh", text=TRAINER)
    table = imported("ds.json", json.dumps(ZERO), script, model="llama3.1-8b", nodes=1)
    assert table["layout"] == {
        "dp": 8,
        "micro_batch_size": 2,
        "zero_stage": 3,
        "recompute": "full",
        "optimizer_offload": 1.0,
    }
    assert table["job"]["global_batch_size"] == 2 * 4 * 8
    assert table["job"]["seq_length"] == 4096
    # bf16 is what a scenario has where nothing is said.
    assert "precision" not in table["job"]


def test_auto_without_its_script_is_asked_for() -> None:
    with pytest.raises(InputError) as caught:
        imported("ds.json", json.dumps(ZERO))
    text = str(caught.value)
    assert "--set train_micro_batch_size_per_gpu=N" in text
    assert "--seq-length N" in text
    assert "--model NAME" in text


def test_deepspeeds_batch_is_the_product_of_its_parts() -> None:
    wrong = {**ZERO, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}
    text = json.dumps({**wrong, "train_batch_size": 100})
    with pytest.raises(InputError, match="micro-batch 2 x accumulation 2 x 64 replicas"):
        imported("ds.json", text, model="llama3.1-8b", seq_length=2048)


def test_megatron_deepspeed_takes_its_stage_from_the_file_that_it_writes() -> None:
    script = """
cat <<EOT > ds.json
{"zero_optimization": {"stage": 1}, "train_micro_batch_size_per_gpu": 1}
EOT
deepspeed --num_nodes 8 --num_gpus 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 \\
  --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \\
  --micro-batch-size 2 --global-batch-size 512 --train-iters 10 --fp16 --lr 1e-4 \\
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 \\
  --deepspeed --deepspeed_config ds.json --zero-stage 1 --checkpoint-activations
"""
    table = imported("train.sh", script)
    layout = table["layout"]
    assert (layout["tp"], layout["pp"], layout["dp"], layout["zero_stage"]) == (2, 4, 8, 1)
    assert layout["recompute"] == "full"
    assert table["job"]["stack"].startswith(("megatron-deepspeed", "imported-stack"))


def test_a_stage_that_the_usual_stack_has_not_is_forecast_with_another() -> None:
    config = {"zero_optimization": {"stage": 2}, "bf16": {"enabled": True}}
    batch = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1}
    options = {"model": "llama3.1-8b", "seq_length": 4096}
    table = imported("ds.json", json.dumps(config | batch), **options)
    assert table["layout"]["zero_stage"] == 2
    assert table["job"]["stack"].startswith(("megatron-deepspeed", "imported-stack"))


def test_the_trainer_is_told_of_split_sequences() -> None:
    layout = ParallelLayout(dp=4, cp=4, cp_comm_type=ContextExchange.ULYSSES, zero_stage=3)
    scenario = scenario_with("llama3.1-8b", "deepspeed-zero3", 2, make_vocab_size_divisible_by=1)
    config, _, script = export(scenario, layout, Tool.DEEPSPEED).files
    # transformers would compare 64 with 16 ranks x 1 sequence x 16 steps = 256 and stop.
    assert "train_batch_size" not in json.loads(config.text)
    assert "export PARALLELISM_CONFIG_SP_SIZE=4\n" in script.text
    assert "export PARALLELISM_CONFIG_DP_SHARD_SIZE=4\n" in script.text


def test_a_nanotron_file_is_its_run() -> None:
    table = imported("config.yaml", NANOTRON, nodes=None)
    assert table["model"] == "llama3.2-1b"
    assert table["cluster"]["nodes"] == 8
    assert table["layout"] == {
        "tp": 4,
        "pp": 2,
        "dp": 8,
        "micro_batch_size": 2,
        "schedule": "1f1b",
        "sequence_parallel": True,
    }
    assert table["job"]["global_batch_size"] == 2 * 4 * 8


def test_nanotron_needs_all_accelerators() -> None:
    with pytest.raises(InputError, match="dp x tp x pp x cp = 64"):
        imported("config.yaml", NANOTRON, nodes=4)


def test_a_written_nanotron_file_has_nanotrons_tables() -> None:
    scenario = scenario_with("llama3.1-8b", "nanotron", 2, make_vocab_size_divisible_by=1)
    layout = ParallelLayout(tp=8, dp=2, sequence_parallel=True, zero_stage=1)
    launch = export(scenario, layout, Tool.NANOTRON)
    table = yaml.safe_load(launch.files[0].text)
    # Source: nanotron config/config.py: fields without a default.
    assert {"general", "parallelism", "model", "tokenizer", "tokens", "optimizer"} <= set(table)
    assert {"dp", "pp", "tp"} <= set(table["parallelism"])
    assert table["model"]["model_config"]["is_llama_config"] is True
    # LRSchedulerArgs.__post_init__ raises without it, and the trainer reads `logging` unasked.
    schedule = table["optimizer"]["learning_rate_scheduler"]
    assert schedule["lr_warmup_style"] in ("linear", "constant")
    assert table["logging"]["iteration_step_info_interval"] == 1
    batch = table["tokens"]["micro_batch_size"] * table["tokens"]["batch_accumulation_per_replica"]
    assert batch * table["parallelism"]["dp"] == 64


def test_a_recipe_with_its_overrides_is_a_run() -> None:
    table = imported("train.sh", BRIDGE, nodes=None)
    assert table["model"] == "qwen3-30b-a3b"
    assert (table["layout"]["tp"], table["layout"]["dp"], table["layout"]["ep"]) == (2, 32, 8)
    assert (table["job"]["precision"], table["job"]["recipe"]) == ("fp8", "tensorwise")


def overrides_of(layout: ParallelLayout, model: str) -> list[str]:
    """Return the overrides of an exported recipe."""
    launch = export(scenario_with(model, "megatron-bridge", 2), layout, Tool.MEGATRON_BRIDGE)
    script = read_script(launch.files[0].text, "train.sh", {})
    return [word for word in script.commands[-1].arguments if "=" in word]


def test_what_a_recipe_sets_of_its_stages_is_put_back() -> None:
    words = overrides_of(ParallelLayout(pp=2, dp=8, layers_per_stage=(14, 18)), "llama3.1-8b")
    assert "model.account_for_embedding_in_pipeline_split=false" in words
    assert "model.account_for_loss_in_pipeline_split=false" in words
    assert "model.recompute_method=null" in words
    assert f"model.pipeline_model_parallel_layout=E{'t' * 14}|{'t' * 18}L" in words
    even = overrides_of(ParallelLayout(pp=2, dp=8), "llama3.1-8b")
    assert "model.pipeline_model_parallel_layout=null" in even


def test_sharded_parameters_of_a_recipe_have_their_checkpoint_format() -> None:
    words = overrides_of(ParallelLayout(dp=16, zero_stage=3), "llama3.1-8b")
    assert {"dist.use_megatron_fsdp=true", "checkpoint.ckpt_format=fsdp_dtensor"} <= set(words)


def test_configs_of_a_recipe_have_names_of_their_own() -> None:
    ends = "model.num_layers_in_first_pipeline_stage=26 model.pipeline_model_parallel_size=2"
    text = BRIDGE.replace("model.pipeline_model_parallel_size=1", ends)
    assert text != BRIDGE
    assert imported("train.sh", text)["layout"]["layers_per_stage"] == [26, 22]


def test_what_only_the_recipe_knows_is_asked_for() -> None:
    text = BRIDGE.replace("train.micro_batch_size=1", "")
    with pytest.raises(InputError, match=r"add train\.micro_batch_size=N"):
        imported("train.sh", text)


@pytest.mark.parametrize("name", ["x.toml", "x.json", "x.yaml", "x.sh"])
@pytest.mark.parametrize("text", ["", "[", "a: [", "\x00", "{}", "--num-layers", "python x.py"])
def test_no_file_brings_the_importer_down(name: str, text: str) -> None:
    for tool in (None, *Tool):
        with pytest.raises(InputError):
            import_files([LaunchFile(name=name, text=text)], OPTIONS, tool=tool)


def test_tokens_in_fp8_are_refused_with_megatrons_reason_and_the_rest_is_written() -> None:
    sparse = ParallelLayout(tp=2, dp=8, ep=8, etp=1, sequence_parallel=True, zero_stage=1)
    moe = {"dispatcher": "flex", "dispatch_dtype": "fp8", "aux_loss": False}
    scenario = scenario_with("qwen3-30b-a3b", "megatron-core", 2, moe=moe)
    with pytest.raises(UnsupportedError) as caught:
        export(scenario, sparse, Tool.MEGATRON_LM)
    (problem,) = caught.value.problems
    assert (problem.key, problem.fix) == (
        "job.moe.dispatch_dtype",
        "leave job.moe.dispatch_dtype out",
    )
    assert "hands DeepEP one tensor" in problem.rule
    del moe["dispatch_dtype"]
    export(scenario_with("qwen3-30b-a3b", "megatron-core", 2, moe=moe), sparse, Tool.MEGATRON_LM)


def test_nanotrons_experts_are_refused_by_name_written_and_read() -> None:
    scenario = scenario_with("mixtral-8x7b", "nanotron", 2)
    with pytest.raises(UnsupportedError, match=r"model\.moe: nanotron's experts"):
        export(scenario, ParallelLayout(dp=16, ep=8), Tool.NANOTRON)
    text = NANOTRON.replace(
        "    hidden_size:", "    moe_config: {num_experts: 8, top_k: 2}\n    hidden_size:"
    )
    assert text != NANOTRON
    with pytest.raises(InputError) as caught:
        imported("config.yaml", text)
    assert [problem.key for problem in caught.value.problems] == ["model.model_config.moe_config"]


def test_torchtitans_deepseek_v3_is_told_apart_from_one_that_predicts_tokens() -> None:
    scenario = scenario_with("deepseek-v3", "torchtitan", 32, global_batch_size=256)
    with pytest.raises(UnsupportedError, match="671B has no multi-token prediction"):
        export(scenario, ParallelLayout(dp=256, ep=64, zero_stage=3), Tool.TORCHTITAN)
