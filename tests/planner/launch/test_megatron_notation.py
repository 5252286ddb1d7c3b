"""Stages in Megatron's notation, by hand and there and back."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.launch import ImportOptions, LaunchFile, import_files
from planner.launch.megatron_notation import parse_stages, shorten, spell_stages, stage_problems
from simulator.errors import InputError

DEEPSEEK_V3 = "Et*3|(tt|)*29,m|L"
"""Of Megatron-LM's documentation, for 16 ranks with two stages each."""
SCRIPT = """
torchrun --nproc_per_node 8 pretrain_gpt.py --bf16 --micro-batch-size 1 --global-batch-size 256 \\
  --seq-length 4096 --pipeline-model-parallel-size 16 --expert-model-parallel-size 8 \\
  --num-layers 61 --pipeline-model-parallel-layout "{stages}"
"""


def stages_read(stages: str) -> list[int]:
    """Return the layers of each stage of an imported DeepSeek-V3."""
    file = LaunchFile(name="train.sh", text=SCRIPT.format(stages=stages))
    options = ImportOptions(cluster="dgx-h100", nodes=16, model="deepseek-v3")
    layout = tomllib.loads(import_files([file], options).scenario)["layout"]
    assert (layout["pp"], layout["vpp"]) == (16, 2)
    return list(layout["layers_per_stage"])


def test_deepseek_v3_as_documented_is_its_32_stages() -> None:
    assert parse_stages(DEEPSEEK_V3) == ["Ettt", *["tt"] * 29, "m", "L"]


def test_prediction_apart_from_the_loss_is_refused_with_the_nearest_that_is_modelled() -> None:
    with pytest.raises(InputError) as caught:
        stages_read(DEEPSEEK_V3)
    (problem,) = caught.value.problems
    assert problem.key == "--pipeline-model-parallel-layout"
    nearest = problem.fix.partition(",")[0]
    assert nearest == "Ettt|(tt|)*29|mL"
    assert stages_read(nearest) == [3, *[2] * 29, 0, 0]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.integers(0, 2))
def test_what_is_spelt_is_read_back_and_has_no_problem(layers: list[int], modules: int) -> None:
    stages = parse_stages(spell_stages(layers, modules))
    assert stages is not None
    assert [stage.count("t") for stage in stages] == layers
    assert parse_stages(shorten(spell_stages(layers, modules))) == stages
    assert not list(stage_problems(stages, sum(layers), len(layers), modules))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("Et|tL", "has 2 stages, and pp = 4 must divide them"),
        ("Et|Et|t|L", "must be one E, then all t, then all m, then one L"),
        ("tE|t|t|L", "must be one E"),
        ("Et|t|mt|L", "must be one E"),
        ("Et|t|t|tt", "must be one E"),
        ("Et|t|t|L", "has 3 layers (t), and the model 4"),
        ("Et|t|t|tmmL", "has 2 m, and the model 1 modules"),
        ("Et|t|ttmL|", "the first stage must have E, and the last one L"),
    ],
)
def test_what_megatron_refuses_is_refused_with_numbers(text: str, rule: str) -> None:
    stages = parse_stages(text)
    assert stages is not None
    assert any(rule in found for found, _ in stage_problems(stages, 4, 4, 1))


@pytest.mark.parametrize("text", ["Ex|L", "E(t|L", "t*99999", "(tt|)*99999999", "[[E],[L]]"])
def test_what_is_no_notation_or_too_long_is_not_read(text: str) -> None:
    assert parse_stages(text) is None
