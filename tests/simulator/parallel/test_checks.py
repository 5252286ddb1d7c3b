"""Illegal layouts are refused with the rule, its numbers and the legal alternatives."""

from __future__ import annotations

import csv
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError, Problem
from simulator.parallel.checks import (
    Reason,
    check_layout,
    legal_tensor_sizes,
    violations,
)
from simulator.parallel.layout import DataParallel, ParallelLayout, Recompute, ScheduleName
from simulator.parallel.program import build_program
from simulator.workload.model import LayerOverride, ModelSpec
from simulator.workload.model_parts import BlockKind
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import AttentionKernel, PartitionRule
from tests.data import data_folder, needs_data
from tests.fakes import fake_stack, tiny_job, tiny_model

QWEN2_7B = tiny_model(
    num_hidden_layers=28,
    hidden_size=3584,
    num_attention_heads=28,
    num_key_value_heads=4,
    intermediate_size=18944,
    vocab_size=152064,
)
GPT2_XL = tiny_model(num_hidden_layers=48, hidden_size=1600, num_attention_heads=25)
EVEN = fake_stack(partition=PartitionRule.EVEN)


def broken(
    layout: ParallelLayout,
    *,
    model: ModelSpec | None = None,
    stack: Stack | None = None,
    batch: int = 8,
    seq_length: int = 32,
) -> list[tuple[Reason, Problem]]:
    job = tiny_job(global_batch_size=batch, seq_length=seq_length)
    found = violations(model or tiny_model(), job, stack or fake_stack(), layout)
    return [(violation.reason, violation.problem) for violation in found]


def test_a_legal_layout_breaks_no_rule() -> None:
    assert broken(ParallelLayout(tp=2, pp=2, dp=2, cp=2)) == []


@pytest.mark.parametrize(
    ("model", "tp", "legal"),
    [
        # The MLP's width 18944 = 37 x 512 forbids 7, and so do four key-value heads.
        (QWEN2_7B, 8, "1, 2, 4 (by its 28 query heads alone: 1, 2, 4, 7, 14, 28)"),
        (GPT2_XL, 4, "1, 5, 25"),
    ],
)
def test_heads_that_do_not_divide_name_every_legal_tp(
    model: ModelSpec, tp: int, legal: str
) -> None:
    heads = model.num_attention_heads
    assert broken(ParallelLayout(tp=tp), model=model)[0] == (
        Reason.HEADS,
        Problem(
            key="layout.tp",
            found=f"{heads} heads, tp {tp}",
            rule="heads must divide by tp",
            fix=f"tp of {legal}",
        ),
    )


ILLEGAL: list[tuple[Reason, ParallelLayout, dict[str, object], str, str]] = [
    (
        Reason.HEADS,
        ParallelLayout(tp=4),
        {"model": tiny_model(num_attention_heads=12, hidden_size=96, num_key_value_heads=6)},
        "key-value heads must divide by tp, or tp by them",
        "tp of 1, 2, 3, 6, 12 (by its 12 query heads alone: 1, 2, 3, 4, 6, 12)",
    ),
    (
        Reason.WIDTH,
        ParallelLayout(tp=4),
        {"model": tiny_model(intermediate_size=130)},
        "the MLP's width must divide by tp",
        "tp of 1, 2",
    ),
    (
        Reason.WIDTH,
        ParallelLayout(tp=4),
        {
            "model": tiny_model(
                hidden_size=66,
                head_dim=16,
                intermediate_size=256,
                layer_overrides=(LayerOverride(layers=(0,), mlp=BlockKind.LINEAR),),
            )
        },
        "a linear layer's width must divide by tp",
        "tp of 1, 2",
    ),
    (
        Reason.SEQUENCE,
        ParallelLayout(cp=4),
        {"seq_length": 36},
        "sequence length must divide by 2 x cp = 8 (balanced causal masks)",
        "smaller cp",
    ),
    (
        Reason.SEQUENCE,
        ParallelLayout(tp=4, sequence_parallel=True),
        {"seq_length": 30},
        "with sequence parallel, seq_length / cp must divide by tp = 4",
        "smaller tp",
    ),
    (
        Reason.BATCH,
        ParallelLayout(dp=3, micro_batch_size=2),
        {"batch": 8},
        "must divide by dp x micro_batch_size = 3 x 2",
        "6 or 12",
    ),
    (
        Reason.LAYERS,
        ParallelLayout(pp=3),
        {"stack": EVEN},
        "4 layers must divide by pp x vpp in this stack",
        "pp x vpp of 1, 2, 4, or layers_per_stage = [2, 1, 1]",
    ),
    (
        Reason.SCHEDULE,
        ParallelLayout(pp=1, vpp=2),
        {},
        "interleaving needs pp > 1 and vpp > 1",
        "vpp = 1",
    ),
    (
        Reason.SCHEDULE,
        ParallelLayout(pp=2, vpp=2, schedule=ScheduleName.ONE_F_ONE_B),
        {},
        "1f1b has one chunk a stage",
        "interleaved, or vpp = 1",
    ),
    (
        Reason.SCHEDULE,
        ParallelLayout(pp=2, vpp=2),
        {"batch": 7},
        "interleaving needs micro-batches in groups of pp = 2",
        "vpp = 1, or another micro_batch_size or dp, or microbatch_group_size = 4",
    ),
    (
        Reason.ZERO,
        ParallelLayout(dp=2, zero_stage=2),
        {"stack": fake_stack(zero_stages=(0, 1, 3))},
        "fake does not offer this ZeRO stage",
        "zero_stage of 0, 1, 3",
    ),
    (
        Reason.ZERO,
        ParallelLayout(pp=2, dp=2, zero_stage=3),
        {"stack": fake_stack(zero_stages_with_pipeline=(0, 1))},
        "fake does not offer this ZeRO stage with pp > 1",
        "zero_stage of 0, 1",
    ),
    (
        Reason.DATA_PARALLEL,
        ParallelLayout(dp=4, zero_stage=1, shard_size=3),
        {},
        "must divide dp x cp = 4, and needs zero_stage >= 1",
        "leave it out",
    ),
    (
        Reason.DATA_PARALLEL,
        ParallelLayout(dp=4, shard_size=2),
        {},
        "must divide dp x cp = 4, and needs zero_stage >= 1",
        "leave it out",
    ),
    (
        Reason.DATA_PARALLEL,
        ParallelLayout(dp=4, sync_every=2),
        {},
        "sync_every needs data_parallel = local-sgd",
        "1",
    ),
    (
        Reason.DATA_PARALLEL,
        ParallelLayout(dp=4, zero_stage=1, data_parallel=DataParallel.PARAMETER_SERVER),
        {},
        "parameter-server keeps whole replicas",
        "zero_stage = 0",
    ),
    (
        Reason.EXPERTS,
        ParallelLayout(ep=2),
        {},
        "a dense model has no experts",
        "ep = 1",
    ),
    (
        Reason.NOT_MODELLED,
        ParallelLayout(cp=2),
        {"stack": fake_stack(kernels={"attention": AttentionKernel.UNFUSED})},
        "context parallelism needs a stack with flash attention",
        "cp = 1",
    ),
    (
        Reason.CONTEXT,
        ParallelLayout(cp=2),
        {"model": tiny_model(sliding_window=8)},
        '"p2p" has no sliding-window attention (Transformer Engine)',
        'cp_comm_type "all_gather" or "a2a", or cp = 1',
    ),
    (
        Reason.STACK,
        ParallelLayout(tp=2, sequence_parallel=True),
        {"stack": fake_stack().model_copy(update={"sequence_parallel": False})},
        "fake has no sequence parallelism",
        "false",
    ),
    (
        Reason.STACK,
        ParallelLayout(recompute=Recompute.SELECTIVE),
        {"stack": fake_stack().model_copy(update={"recompute": (Recompute.NONE,)})},
        "fake does not offer this recomputation",
        "recompute of none",
    ),
]


@pytest.mark.parametrize(("reason", "layout", "setting", "rule", "fix"), ILLEGAL)
def test_each_broken_rule_is_named_with_the_legal_alternative(
    reason: Reason, layout: ParallelLayout, setting: dict[str, object], rule: str, fix: str
) -> None:
    found = [
        (why, problem.rule, problem.fix)
        for why, problem in broken(layout, **setting)  # type: ignore[arg-type]
    ]
    assert (reason, rule, fix) in found


def test_every_reason_of_the_layout_itself_is_covered() -> None:
    # The world size is the cluster's business, memory and constraints the planner's;
    # test_saver_checks.py has recomputation and offload, test_number_checks.py numbers.
    elsewhere = {Reason.WORLD_SIZE, Reason.MEMORY, Reason.RECOMPUTE, Reason.OFFLOAD}
    elsewhere |= {Reason.NUMBERS, Reason.CONSTRAINT}
    assert {case[0] for case in ILLEGAL} == set(Reason) - elsewhere


def test_all_broken_rules_are_reported_at_once_with_their_file() -> None:
    layout = ParallelLayout(tp=3, dp=3, pp=3, vpp=2)
    with pytest.raises(InputError) as caught:
        check_layout(tiny_model(), tiny_job(), fake_stack(), layout, "run.toml")
    assert [(p.where, p.key) for p in caught.value.problems] == [
        ("run.toml", "layout.tp"),
        ("run.toml", "layout.tp"),
        ("run.toml", "job.global_batch_size"),
        ("run.toml", "layout.vpp"),
        ("run.toml", "layout.pp"),
    ]


@given(
    heads=st.sampled_from((1, 2, 4, 6, 8, 12, 25, 28)),
    groups=st.sampled_from((1, 2, 4)),
    width=st.integers(1, 64),
)
def test_legal_tensor_sizes_are_those_that_break_no_rule(
    heads: int, groups: int, width: int
) -> None:
    groups = groups if heads % groups == 0 else heads
    model = tiny_model(
        hidden_size=8 * heads,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        intermediate_size=width,
    )
    legal = [tp for tp in range(1, 33) if not broken(ParallelLayout(tp=tp), model=model)]
    assert legal_tensor_sizes(model, 32) == legal


def table(name: str) -> list[dict[str, str]]:
    with (data_folder() / "cases" / "layout" / name).open(newline="") as file:
        return list(csv.DictReader(file))


@needs_data
def test_reported_head_counts_get_the_right_list_of_legal_tp() -> None:
    rows = [row for row in table("divisibility.csv") if row["constraint"] == "heads % tp"]
    models = {"28": QWEN2_7B, "25": GPT2_XL}
    answers = {}
    for row in rows:
        heads = row["input"].split(": ")[1].split(" heads")[0]
        tp = int(row["input"].split("tp=")[1])
        ((_, problem), *_rest) = broken(ParallelLayout(tp=tp), model=models[heads])
        answers[heads] = re.findall(r"\d+", problem.fix.split("alone: ")[-1])
    assert answers == {
        heads: re.findall(r"\d+", row["right_answer"].split("(")[0])
        for heads, row in zip(models, rows, strict=True)
    }


@needs_data
@pytest.mark.parametrize("sizes", [{"tp": 8, "sequence_parallel": True}, {"cp": 8}])
def test_reported_indivisible_sequence_is_illegal(sizes: dict[str, object]) -> None:
    assert any(row["constraint"] == "seq % tp and seq % cp" for row in table("divisibility.csv"))
    model = tiny_model(num_attention_heads=8)
    reasons = [r for r, _ in broken(ParallelLayout(**sizes), model=model, seq_length=1020)]  # type: ignore[arg-type]
    assert reasons == [Reason.SEQUENCE]


@needs_data
@pytest.mark.parametrize("row", table("uneven_pipeline.csv"), ids=lambda row: row["source"])
def test_reported_uneven_pipelines_are_refused_and_lose_no_layer(row: dict[str, str]) -> None:
    layers, pp = int(row["num_layers"]), int(row["pp"])
    per_chunk = re.fullmatch(r"layers_per_vstage=(\d+)", row["layers_per_virtual_stage_or_vpp"])
    # Two layers a virtual stage: 40 layers need 20 virtual stages, which 8 ranks cannot share.
    vpp = layers // (pp * int(per_chunk[1])) if per_chunk else 1
    layout = ParallelLayout(pp=pp, vpp=vpp)
    model = tiny_model(num_hidden_layers=layers)
    refused = [r for r, _ in broken(layout, model=model, stack=EVEN)]
    program = build_program(model, tiny_job(), fake_stack(), layout, 8)
    kept = sum(n for chunk in program.chunks for _, n in chunk.whole.layers)
    assert (refused, kept) == ([Reason.LAYERS], layers)


@pytest.mark.parametrize(("layers", "split"), [(30, [8, 8, 7, 7]), (46, [12, 12, 11, 11])])
def test_uneven_layers_are_offered_and_built_as_a_balanced_split(
    layers: int, split: list[int]
) -> None:
    model = tiny_model(num_hidden_layers=layers)
    ((_, problem),) = broken(ParallelLayout(pp=4), model=model, stack=EVEN)
    program = build_program(model, tiny_job(), fake_stack(), ParallelLayout(pp=4), 8)
    built = [sum(n for _, n in chunk.whole.layers) for chunk in program.chunks]
    assert (str(split) in problem.fix, built) == (True, split)


def test_forty_layers_over_eight_ranks_of_two_layer_chunks_are_refused() -> None:
    # Two chunks of two layers a rank would hold 32 layers.
    model = tiny_model(num_hidden_layers=40)
    ((reason, problem),) = broken(ParallelLayout(pp=8, vpp=2), model=model, stack=EVEN)
    assert (reason, problem.found) == (Reason.LAYERS, "pp 8 x vpp 2 = 16")
