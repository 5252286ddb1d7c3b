from collections.abc import Mapping
from pathlib import Path

import pytest

from calibrate.validation import RowResult, Status, validate_rows
from calibrate.validation.cells import Row
from calibrate.validation.steps import StepCase, StepForecasts
from simulator.hardware.accelerator import Dtype
from simulator.parallel.layout import ContextExchange, Recompute, ScheduleName
from simulator.units import GIB
from simulator.workload.model import Position
from simulator.workload.stack_choices import AttentionKernel, PartitionRule
from tests.calibrate.validation.tables import STEP, step_rows, write_table


@pytest.fixture(scope="module")
def forecasts() -> StepForecasts:
    return StepForecasts(None, None)


def read(forecasts: StepForecasts, **changes: str) -> tuple[StepCase, list[str]]:
    row = Row({**STEP, **changes})
    return forecasts.read(row), row.assumed


def predict(forecasts: StepForecasts, **changes: str) -> RowResult:
    (result,) = forecasts.predict([("a", Row({**STEP, **changes}))])
    return result


def test_a_complete_row_is_predicted_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    path = write_table(tmp_path / "steps.csv", step_rows({}))
    (row,) = validate_rows(path).rows
    assert row.status is Status.PREDICTED
    assert row.predicted is not None
    assert row.low is not None
    assert row.high is not None
    assert row.low < row.predicted < row.high
    assert row.signed_error == pytest.approx(row.predicted / 0.5 - 1)
    assert row.peak_memory is not None
    assert row.feasible is True


def test_numbers_written_as_decimals_are_the_same_row(forecasts: StepForecasts) -> None:
    decimals = dict.fromkeys(("gpus", "heads", "kv_heads"), "16.0") | {"dp": "8.0"}
    assert predict(forecasts, **decimals).predicted == predict(forecasts).predicted


def test_the_case_is_what_the_columns_say(forecasts: StepForecasts) -> None:
    old = {"framework": "Megatron-LM", "attention_kernel": "no flash (2021)"}
    layout = {"tp": "2", "pp": "2", "vpp": "2", "dp": "4", "grad_accum": "4"}
    case, _ = read(forecasts, **old, **layout, recompute="full")
    assert (case.layout.tp, case.layout.pp, case.layout.dp, case.layout.vpp) == (2, 2, 4, 2)
    assert case.layout.effective_schedule is ScheduleName.INTERLEAVED
    assert case.layout.recompute is Recompute.FULL
    assert case.job.precision is Dtype.BF16
    assert case.job.make_vocab_size_divisible_by == 1
    assert case.model.vocab_size == 50304
    assert case.model.position is Position.LEARNED


def test_a_gated_mlp_is_a_llama(forecasts: StepForecasts) -> None:
    case, _ = read(forecasts, ffn_matrices="3", ffn_hidden="2816", model="Llama small")
    assert (case.model.gated_mlp, case.model.position) == (True, Position.ROPE)
    assert not case.model.attention_bias


@pytest.mark.parametrize(
    ("column", "assumed"),
    [
        ("micro_batch", ""),
        ("zero_stage", "zero_stage = 0"),
        ("sequence_parallel", "sequence_parallel = False"),
        ("recompute", "recompute = none"),
        ("kv_heads", "kv_heads = 16"),
        ("ffn_hidden", "ffn_hidden = 4096"),
        ("precision", "precision = bf16"),
        ("optimizer", "optimizer = Adam"),
        ("tied_embeddings", "tied_embeddings = True"),
        ("vocab_padded", "vocabulary padded to a multiple of 128 x tp"),
        ("pp", "pp = 1"),
    ],
)
def test_a_blank_cell_takes_its_documented_default(
    forecasts: StepForecasts, column: str, assumed: str
) -> None:
    result = predict(forecasts, **{column: ""})
    assert result.status is Status.PREDICTED, result.reason
    assert not assumed or assumed in result.assumed


def test_a_missing_micro_batch_follows_from_the_accumulation(forecasts: StepForecasts) -> None:
    case, assumed = read(forecasts, micro_batch="", grad_accum="4")
    assert case.layout.micro_batch_size == 1
    assert not [text for text in assumed if text.startswith("micro_batch")]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"layers": ""}, "layers: not given"),
        ({"layers": "nan"}, "layers: not given"),
        ({"hidden": "-1"}, "hidden: '-1' is not a positive finite number"),
        ({"hidden": "wide"}, "hidden: 'wide' is not a positive finite number"),
        ({"hidden": "1e400"}, "hidden: '1e400' is not a positive finite number"),
        ({"hidden": "1e300"}, "hidden: '1e300' is not at most"),
        ({"heads": "2.5"}, "heads: '2.5' is not a positive whole number"),
        ({"gpus": "0"}, "gpus: '0' is not a positive finite number"),
        ({"step_time_s": "-3"}, "step_time_s: '-3' is not a positive finite number"),
        ({"heads": "7", "kv_heads": "7"}, "heads: 7 do not divide hidden 1024"),
        ({"vocab": "", "vocab_padded": ""}, "vocab: not given"),
        ({"experts": "8"}, "moe_ffn_hidden: not given"),
        ({"params_b": "8", "active_params_b": "1"}, "experts: not given"),
        ({"precision": "int8"}, "precision: 'int8' is not modelled"),
        ({"precision": "posit"}, "precision: 'posit' is not one of"),
        ({"task": "adapters"}, "task: 'adapters' trains only a part of the weights"),
        ({"recompute": "selective: head"}, "recompute: 'selective: head' is not"),
        ({"optimizer": "Shampoo"}, "optimizer: 'Shampoo' is not Adam"),
        ({"framework": "Abacus"}, "no stack file for 'Abacus'"),
        ({"framework": ""}, "framework: not given"),
        ({"hardware": "Abacus"}, "hardware: 'Abacus' is not a name or alias"),
        ({"hardware": ""}, "hardware: not given"),
        ({"gpu_mem_gb": "lots"}, "gpu_mem_gb: 'lots' is not"),
        ({"dp": "4"}, "dp: 4 is not gpus / (tp x pp x cp) = 16 / 2"),
        ({"tp": "3"}, "gpus: 16 do not divide by tp x pp x cp = 3"),
        ({"grad_accum": "3"}, "global_batch: 32 is not dp 8 x micro_batch 2 x grad_accum 3"),
        ({"pp": "2", "dp": "4", "grad_accum": "4", "pp_schedule": "V-Min"}, "V-Min' is not"),
        ({"zero_stage": "none"}, "zero_stage: 'none' is not a digit"),
        ({"zero_stage": "7"}, "zero_stage: "),
        ({"sequence_parallel": "maybe"}, "sequence_parallel: 'maybe' is not True or False"),
        ({"tp": "", "pp": "", "dp": ""}, "tp, pp, dp: none of them is given"),
        ({"global_batch": "33", "grad_accum": ""}, "must divide by dp x micro_batch_size"),
        ({"status": "suspect"}, "the table marks the row as 'suspect'"),
    ],
)
def test_a_row_that_cannot_be_predicted_says_why(
    forecasts: StepForecasts, changes: Mapping[str, str], reason: str
) -> None:
    result = predict(forecasts, **changes)
    assert result.status is Status.SKIPPED
    assert reason in result.reason


def test_all_reasons_of_a_row_are_given_at_once(forecasts: StepForecasts) -> None:
    reason = predict(forecasts, layers="", framework="Abacus", hardware="Abacus").reason
    assert [part.partition(":")[0] for part in reason.split("; ")] == [
        "layers",
        "framework",
        "hardware",
    ]


def test_a_run_that_failed_is_predicted_without_a_measurement(forecasts: StepForecasts) -> None:
    result = predict(forecasts, status="oom", hidden="16384", layers="80", heads="128")
    assert (result.status, result.measured, result.signed_error) == (Status.PREDICTED, None, None)
    assert (result.ran, result.feasible) == (False, False)


def test_the_step_time_follows_from_the_throughput(forecasts: StepForecasts) -> None:
    result = predict(forecasts, step_time_s="", tokens_per_s_per_gpu="4096")
    assert result.measured == pytest.approx(32 * 1024 / (4096 * 16))


@pytest.mark.parametrize(
    ("changes", "profile"),
    [
        ({"inter_node_link": "4x InfiniBand HDR-class per node, 800 Gb/s"}, "a100-4nic"),
        ({"inter_node_link": "4x Omni-Path per node"}, "a100-opa"),
        ({"inter_node_link": "4x 100 Gb RoCE per node"}, "a100-roce"),
        ({"inter_node_link": "8x HDR200 IB per node"}, "dgx-a100-80gb"),
        ({"inter_node_link": ""}, "dgx-a100-80gb"),
        ({"gpu_mem_gb": "40"}, "dgx-a100-40gb"),
        ({"hardware": "NVIDIA H100", "inter_node_link": "AWS EFA"}, "h100-efa"),
        ({"gpus": "8", "dp": "4", "grad_accum": "4", "inter_node_link": "4x Omni-Path"},
         "dgx-a100-80gb"),
    ],
)  # fmt: skip
def test_the_machine_follows_from_alias_memory_and_network(
    forecasts: StepForecasts, changes: Mapping[str, str], profile: str
) -> None:
    case, _ = read(forecasts, **changes)
    assert case.profile.name == profile


def test_a_network_that_no_profile_has_is_put_into_one(forecasts: StepForecasts) -> None:
    case, assumed = read(forecasts, inter_node_link="2x 100 Gb/s InfiniBand per node")
    assert case.profile.node.nic is not None
    assert (case.profile.node.nic.per_node, case.profile.node.nic.bandwidth) == (2, 12.5e9)
    assert any("with 2 x 100 Gb/s a node" in text for text in assumed)


def test_a_node_of_another_size_and_memory_is_made(forecasts: StepForecasts) -> None:
    case, _ = read(forecasts, gpus_per_node="4", gpu_mem_gb="64", inter_node_link="")
    node = case.profile.node
    assert (node.accelerators, node.scale_up.domain_size) == (4, 4)
    assert case.profile.accelerator.memory == 64 * GIB


@pytest.mark.parametrize(
    ("changes", "stack"),
    [
        ({"framework": "Megatron-DeepSpeed 0.9"}, "megatron-deepspeed"),
        ({"framework": "NeMo/Megatron-Core"}, "megatron-core"),
        ({"framework": "Megatron-LM", "attention_kernel": "flash"}, "megatron-core"),
        ({"framework": "Megatron-LM", "attention_kernel": "", "precision": "bf16"},
         "megatron-core"),
        ({"framework": "nanotron", "attention_kernel": "flash"}, "nanotron"),
    ],
)  # fmt: skip
def test_the_stack_follows_from_the_framework(
    forecasts: StepForecasts, changes: Mapping[str, str], stack: str
) -> None:
    case, _ = read(forecasts, **changes)
    assert case.stack.name == stack


@pytest.mark.parametrize("year", ["2021", "2022"])
def test_the_year_decides_between_stacks_of_one_framework(
    forecasts: StepForecasts, year: str
) -> None:
    case, assumed = read(forecasts, framework="Megatron-LM", attention_kernel=f"no flash ({year})")
    assert case.stack.name == f"megatron-lm-{year}"
    assert case.stack.kernels.attention is AttentionKernel.UNFUSED
    assert f"stack megatron-lm-{year}" in assumed


def test_sequence_parallel_defaults_to_what_recent_stacks_do(forecasts: StepForecasts) -> None:
    recent, _ = read(
        forecasts, framework="Megatron-Core", attention_kernel="flash", sequence_parallel=""
    )
    old, _ = read(forecasts, sequence_parallel="")
    assert (recent.layout.sequence_parallel, old.layout.sequence_parallel) == (True, False)


def test_a_row_that_contradicts_its_stack_changes_a_copy_of_it(forecasts: StepForecasts) -> None:
    case, assumed = read(
        forecasts,
        framework="Megatron-Core",
        attention_kernel="unfused",
        overlap="none (all off)",
        grad_dtype="fp32",
        cuda_graph="full_iteration",
    )
    stack = case.stack
    assert stack.kernels.attention is AttentionKernel.UNFUSED
    assert stack.kernels.cpu_launch == 0
    assert not any((stack.overlap.gradient_reduce, stack.overlap.pipeline_send))
    assert stack.numerics.reduce_bytes == 4
    assert any("attention = unfused" in text for text in assumed)


def test_ends_count_as_layers_where_only_that_divides(forecasts: StepForecasts) -> None:
    case, _ = read(
        forecasts, framework="Megatron-Core", layers="6", pp="4", dp="2", tp="2", grad_accum="8"
    )
    assert case.stack.partition is PartitionRule.EMBEDDING_COUNTS


def test_given_profile_and_stack_take_the_place_of_the_rows(tmp_path: Path) -> None:
    rows = step_rows({"hardware": "Abacus", "framework": "Abacus", "attention_kernel": ""})
    path = write_table(tmp_path / "steps.csv", rows)
    (row,) = validate_rows(path, profile="dgx-h100", stack="megatron-core").rows
    assert row.labels == {"stack": "megatron-core", "profile": "dgx-h100", "precision": "bf16"}


@pytest.mark.parametrize(
    ("kind", "part"),
    [("GiB, torch max_memory_allocated", "allocated"), ("nvidia-smi max", "device")],
)
def test_reported_memory_is_compared_in_its_own_convention(
    forecasts: StepForecasts, kind: str, part: str
) -> None:
    result = predict(forecasts, peak_memory_gb="10", memory_kind=kind)
    assert result.memory is not None
    assert result.memory.measured == 10 * GIB
    assert (result.memory.predicted == result.peak_memory) == (part == "device")


def test_modelled_memory_is_no_measurement(forecasts: StepForecasts) -> None:
    result = predict(forecasts, peak_memory_gb="10", memory_kind="GiB, MODELLED by the paper")
    assert result.memory is None


def test_async_tensor_parallelism_has_a_chunk_for_each_rank(forecasts: StepForecasts) -> None:
    case, _ = read(
        forecasts, framework="torchtitan", overlap="FSDP2; async TP", tp="2", dp="8", gpus="16"
    )
    assert (case.stack.overlap.tensor_chunks, case.stack.overlap.tensor_fraction) == (2, 0.0)


def test_context_parallel_ranks_of_torchtitan_gather_keys(forecasts: StepForecasts) -> None:
    flash = {"framework": "torchtitan", "attention_kernel": "flash"}
    one, _ = read(forecasts, **flash, tp="2", dp="8", gpus="16")
    two, _ = read(forecasts, **flash, tp="1", dp="8", cp="2", gpus="16")
    exchanges = (one.layout.cp_comm_type, two.layout.cp_comm_type)
    assert exchanges == (ContextExchange.RING, ContextExchange.ALL_GATHER)
