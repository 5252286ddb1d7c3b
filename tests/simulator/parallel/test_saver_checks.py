"""Recomputation and offload that a model, a job or a stack does not allow is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from simulator.errors import Problem
from simulator.hardware.accelerator import Dtype
from simulator.parallel.checks import Reason, violations
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.saver_checks import modules_of
from simulator.workload.job import Optimizer, Recipe, TrainingJob
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Offload, Stack
from simulator.workload.stack_choices import RecomputeMethod, RecomputeModule, SelectiveRecompute
from tests.fakes import fake_stack, tiny_job, tiny_model

ALL = fake_stack(offload=Offload(activations=True, with_recompute=True, optimizer=True))
NONE = fake_stack()
DENSE = tiny_model()
FULL, SELECTIVE = {"recompute": "full"}, {"recompute": "selective"}


def problems(
    layout: dict[str, Any], stack: Stack = ALL, model: ModelSpec = DENSE, **job: object
) -> list[tuple[Reason, Problem]]:
    asked: TrainingJob = tiny_job(**job)
    found = violations(model, asked, stack, ParallelLayout.model_validate_json(json.dumps(layout)))
    return [(violation.reason, violation.problem) for violation in found]


LEGAL: list[dict[str, Any]] = [
    {**FULL, "recompute_num_layers": 4},
    {**FULL, "recompute_num_layers": 2, "recompute_method": "uniform", "pp": 2},
    {**SELECTIVE, "recompute_modules": ["core_attn", "layernorm", "mlp"]},
    {"offload_layers": 3},
    {"offload_layers": 3, **FULL},
    {"optimizer_offload": 0.5, "zero_stage": 1},
    {"optimizer_offload": 1.0, "zero_stage": 3, "pp": 2},
]
ILLEGAL: list[tuple[dict[str, Any], Stack, dict[str, Any], Reason, str, str]] = [
    (
        {"recompute_num_layers": 2},
        ALL,
        {},
        Reason.RECOMPUTE,
        "counts layers of full recomputation",
        "recompute = full, or leave it out",
    ),
    (
        {**FULL, "recompute_method": "uniform"},
        ALL,
        {},
        Reason.RECOMPUTE,
        "says which recompute_num_layers layers go together, and none are given",
        "recompute_num_layers of 1 or more, or leave it out",
    ),
    (
        {**FULL, "recompute_num_layers": 3, "pp": 2},
        ALL,
        {},
        Reason.RECOMPUTE,
        "a virtual stage has at most 2 layers",
        "at most 2",
    ),
    (
        {**FULL, "recompute_num_layers": 2, "recompute_method": "block"},
        fake_stack(recompute_methods=(RecomputeMethod.UNIFORM,)),
        {},
        Reason.RECOMPUTE,
        "fake does not choose layers so",
        "uniform or leave it out: all are recomputed",
    ),
    (
        {"recompute_modules": ["mlp"], **FULL},
        ALL,
        {},
        Reason.RECOMPUTE,
        "are of selective recomputation, not full",
        "leave it out",
    ),
    (
        {**SELECTIVE, "recompute_modules": ["mlp", "mlp"]},
        ALL,
        {},
        Reason.RECOMPUTE,
        "stand more than once",
        "each once",
    ),
    (
        {**SELECTIVE, "recompute_modules": ["moe_act", "mla_up_proj"]},
        ALL,
        {},
        Reason.RECOMPUTE,
        "tiny has none",
        "one of: core_attn, layernorm, mlp",
    ),
    (
        {**SELECTIVE, "recompute_modules": ["mlp"]},
        fake_stack(recompute_modules=(RecomputeModule.CORE_ATTENTION,)),
        {},
        Reason.RECOMPUTE,
        "fake does not recompute by this",
        "one of: core_attn",
    ),
    (
        {**SELECTIVE, "recompute_modules": ["layernorm", "mlp"]},
        ALL,
        {"precision": Dtype.FP8, "recipe": Recipe.DELAYED},
        Reason.RECOMPUTE,
        "delayed scaling would see the same tensor twice (Megatron-LM refuses it)",
        "another job.recipe, or leave it out",
    ),
    (
        {"offload_layers": 2},
        NONE,
        {},
        Reason.OFFLOAD,
        "fake does not move activations to host memory",
        "0, or another job.stack",
    ),
    (
        {"offload_layers": 2, "pp": 2},
        ALL,
        {},
        Reason.OFFLOAD,
        "activations are offloaded with pp = 1 only, not 2",
        "0, or pp = 1",
    ),
    (
        {"offload_layers": 4},
        ALL,
        {},
        Reason.OFFLOAD,
        "at least one of the 4 layers stays on the device",
        "at most 3",
    ),
    (
        {"offload_layers": 2, **SELECTIVE},
        fake_stack(offload=Offload(activations=True)),
        {},
        Reason.OFFLOAD,
        "fake does not combine it with recomputation",
        "recompute = none",
    ),
    (
        {"optimizer_offload": 0.5, "zero_stage": 1},
        NONE,
        {},
        Reason.OFFLOAD,
        "fake does not update optimizer states on the host",
        "0, or another job.stack",
    ),
    (
        {"optimizer_offload": 0.5},
        ALL,
        {},
        Reason.OFFLOAD,
        "offloaded states are those of a sharded optimizer: zero_stage of 1 or more",
        "zero_stage of 1, 2, 3",
    ),
    (
        {"optimizer_offload": 0.5, "zero_stage": 1},
        ALL,
        {"optimizer": Optimizer.MUON},
        Reason.OFFLOAD,
        "only adam, sgd-momentum, sgd run on the host",
        "0",
    ),
]


@pytest.mark.parametrize("layout", LEGAL, ids=str)
def test_what_the_stack_offers_is_legal(layout: dict[str, Any]) -> None:
    assert problems(layout) == []


@pytest.mark.parametrize(
    ("layout", "stack", "job", "reason", "rule", "fix"),
    ILLEGAL,
    ids=[f"{case[0]}" for case in ILLEGAL],
)
def test_each_refusal_names_its_rule_and_the_nearest_fix(  # noqa: PLR0917
    layout: dict[str, Any],
    stack: Stack,
    job: dict[str, Any],
    reason: Reason,
    rule: str,
    fix: str,
) -> None:
    ((why, problem),) = problems(layout, stack, **job)
    assert (why, problem.rule, problem.fix) == (reason, rule, fix)


def test_recompute_by_operator_is_refused_for_a_mixture_of_experts() -> None:
    stack = fake_stack(selective=SelectiveRecompute.OPERATORS)
    mixtral = load_model("mixtral-8x7b").spec
    found = [reason for reason, _ in problems(SELECTIVE, stack, mixtral)]
    assert found == [Reason.RECOMPUTE]


def test_shared_experts_beside_the_dispatch_are_not_recomputed_alone() -> None:
    stack = fake_stack(overlap={"shared_expert": True})
    deepseek = load_model("deepseek-v3").spec
    layout = {**SELECTIVE, "recompute_modules": ["shared_experts"]}
    rules = [problem.rule for _, problem in problems(layout, stack, deepseek)]
    assert rules == ["fake runs shared experts beside the dispatch (overlap.shared_expert)"]


@pytest.mark.parametrize(
    ("model", "absent"),
    [
        ("llama3-70b", {"mla_up_proj", "moe_act", "shared_experts", "moe"}),
        ("mixtral-8x7b", {"mla_up_proj", "shared_experts", "mlp"}),
        ("deepseek-v3", set()),
    ],
)
def test_modules_are_those_of_the_model(model: str, absent: set[str]) -> None:
    assert set(RecomputeModule) - set(modules_of(load_model(model).spec)) == absent
