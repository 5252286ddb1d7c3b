"""What a job's numbers may ask of a layout: each refusal says why, and what else there is."""

from __future__ import annotations

import pytest

from simulator.hardware.accelerator import Dtype
from simulator.parallel.checks import Reason, violations
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.number_checks import gpu_problem, number_problems
from simulator.workload.job import Dtypes, Lora, LoraTarget, Optimizer, Part, Recipe
from simulator.workload.model import ModelSpec
from tests.fakes import fake_stack, tiny_job, tiny_model

BROKEN = [
    ({"precision": Dtype.INT8}, {}, "nothing is trained in this format"),
    ({"recipe": Recipe.MXFP8}, {}, "bf16 is scaled by no recipe"),
    ({"precision": Dtype.FP4, "recipe": Recipe.DELAYED}, {}, "fp4 is scaled by nvfp4, mxfp4"),
    ({"fp8_parameters": True}, {}, "weights in 8 bits need precision fp8, which is bf16"),
    (
        {"precision": Dtype.FP8, "recipe": Recipe.ROWWISE, "fp8_parameters": True},
        {},
        "rowwise scales weights along either dimension anew in each pass",
    ),
    ({"dtypes": Dtypes(gradient=Dtype.FP8)}, {}, "is kept as one of fp32, bf16, fp16"),
    (
        {"dtypes": Dtypes(reduce=Dtype.FP32)},
        {},
        "gradients of 2 bytes gain nothing from 4 bytes on the wire",
    ),
    (
        {"dtypes": Dtypes(state=Dtype.BF16), "optimizer": Optimizer.ADAM_8BIT},
        {},
        "adam-8bit has its own format of states",
    ),
    (
        {"optimizer": Optimizer.MUON},
        {"zero_stage": 3},
        "muon orthogonalises whole gradients, which zero_stage 2 and 3 cut",
    ),
    (
        {"optimizer": Optimizer.ADAFACTOR, "lora": Lora(rank=4)},
        {},
        "adapters updated by adafactor are not modelled",
    ),
    (
        {"powersgd_rank": 4},
        {"dp": 2, "zero_stage": 1},
        "PowerSGD compresses all-reduced gradients of whole replicas",
    ),
    ({"powersgd_rank": 4}, {}, "with dp x cp = 1 no gradient is sent"),
    ({"freeze": (Part.EXPERTS,)}, {}, "a dense model has no experts"),
    (
        {"freeze": (Part.EMBEDDING, Part.ATTENTION, Part.MLP, Part.HEAD)},
        {},
        "nothing is trained",
    ),
    ({"lora": Lora(rank=4), "freeze": (Part.MLP,)}, {}, "beside adapters all is frozen already"),
    ({"lora": Lora(rank=6)}, {"tp": 4}, "the rank of adapters must divide by tp = 4"),
]


def rules(model: ModelSpec, job: dict[str, object], layout: dict[str, object]) -> list[str]:
    plan = ParallelLayout.model_validate(layout)
    return [p.rule for p in number_problems(model, tiny_job(**job), fake_stack(), plan)]


@pytest.mark.parametrize(("job", "layout", "rule"), BROKEN)
def test_each_broken_rule_is_named(
    job: dict[str, object], layout: dict[str, object], rule: str
) -> None:
    assert rules(tiny_model(), job, layout) == [rule]


def test_a_shared_table_is_frozen_at_both_ends_or_neither() -> None:
    tied = tiny_model(tie_word_embeddings=True)
    found = rules(tied, {"freeze": (Part.HEAD,)}, {})
    assert found == ["embedding and head share one table: both are frozen or neither"]


@pytest.mark.parametrize("optimizer", list(Optimizer))
def test_every_optimizer_is_legal_by_itself(optimizer: Optimizer) -> None:
    assert rules(tiny_model(), {"optimizer": optimizer}, {"dp": 2, "zero_stage": 1}) == []


@pytest.mark.parametrize("recipe", list(Recipe))
def test_every_recipe_is_legal_with_its_precision(recipe: Recipe) -> None:
    narrow = Dtype.FP4 if recipe in (Recipe.NVFP4, Recipe.MXFP4) else Dtype.FP8
    assert rules(tiny_model(), {"precision": narrow, "recipe": recipe}, {"tp": 2}) == []


def test_some_targets_are_legal() -> None:
    lora = Lora(rank=4, targets=(LoraTarget.QKV,))
    assert rules(tiny_model(), {"lora": lora}, {"tp": 2}) == []


def test_layout_checks_name_their_reason() -> None:
    job = tiny_job(optimizer=Optimizer.MUON)
    plan = ParallelLayout(dp=2, zero_stage=2)
    found = [v.reason for v in violations(tiny_model(), job, fake_stack(), plan)]
    assert found == [Reason.NUMBERS]


@pytest.mark.parametrize(
    ("recipe", "has_fp4", "refused"),
    [(Recipe.MXFP8, False, True), (Recipe.MXFP8, True, False), (Recipe.BLOCKWISE, False, False)],
)
def test_block_scales_need_block_scaled_units(recipe: Recipe, has_fp4: bool, refused: bool) -> None:
    assert (gpu_problem(Dtype.FP8, recipe, has_fp4=has_fp4) is not None) is refused
