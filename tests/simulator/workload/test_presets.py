from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from simulator.errors import InputError
from simulator.workload.load import load_model, model_names
from tests.data import data_folder, needs_data

# Billions, as printed in the papers' tables: Narayanan et al. 2021 Table 1, Korthikanti et al.
# 2022 Table 3, Brown et al. 2020 Table 2.1, the Nemotron-4 reports, llm-foundry's tables.
ROUNDED = {
    "megatron-1.7b": 1.7,
    "megatron-3.6b": 3.6,
    "megatron-7.5b": 7.5,
    "megatron-18.4b": 18.4,
    "megatron-22b": 22.0,
    "megatron-39.1b": 39.1,
    "megatron-76.1b": 76.1,
    "megatron-145.6b": 145.6,
    "megatron-310.1b": 310.1,
    "megatron-529.6b": 529.6,
    "megatron-530b": 530.0,
    "megatron-1008b": 1008.0,
    "gpt3-175b": 175.0,
    "grok-1": 314.0,
    "nemotron4-15b": 15.6,
    "nemotron4-340b": 341.0,
    "mpt-125m": 0.125311,
    "mpt-350m": 0.355985,
    "mpt-760m": 0.760471,
    "mpt-1b": 1.31595,
    "mpt-3b": 2.65184,
    "mpt-7b": 6.65886,
    "mpt-13b": 12.854,
    "mpt-30b": 29.9752,
    "mpt-70b": 64.8624,
}
ROUNDING = 0.01

# SigLIP So400m and the projector: all that the published totals hold beside the language model.
GEMMA3_TOTALS = {
    "gemma3-4b": 4300079472,
    "gemma3-12b": 12187325040,
    "gemma3-27b": 27432406640,
}
# The vision tower of Llama 4 and its projector, beside the text: 34 layers of width 1408 and MLP
# 5632 with biases, patches of 3 x 14 x 14, 577 positions, an adapter 5632 -> 4096 -> 4096 and a
# projector 4096 -> 5120 without (transformers 4.57, modeling_llama4.py).
LLAMA4_TOTALS = {"llama4-scout": 108641793536, "llama4-maverick": 401583781376}
LLAMA4_VISION_LAYER = 4 * (1408 + 1) * 1408 + (1408 + 1) * 5632 + (5632 + 1) * 1408 + 4 * 1408
LLAMA4_VISION_ENDS = (3 * 14 * 14 + 1 + 577 + 4) * 1408
LLAMA4_PROJECTOR = 5632 * 4096 + 4096 * 4096 + 4096 * 5120

# Checkpoints that hold the module of multi-token prediction with an embedding and a head of its
# own: all safetensors of zai-org/GLM-4.5-Air and of deepseek-ai/DeepSeek-V3 in bf16.
CHECKPOINTS = {"glm-4.5-air": 110468824832, "deepseek-v3": 684489845504}

# Billions that a token meets as the models' own reports print them: with or without the embedding
# and the head, as each report chooses.
ACTIVE = {
    "mixtral-8x7b": 12.9,
    "mixtral-8x22b": 39.0,
    "deepseek-v2": 21.0,
    "deepseek-v2-lite": 2.4,
    "deepseek-v3": 37.0,
    "qwen3-30b-a3b": 3.3,
    "qwen3-235b-a22b": 22.0,
    "gpt-oss-20b": 3.6,
    "gpt-oss-120b": 5.1,
    "dbrx": 36.0,
    "llama4-scout": 17.0,
    "llama4-maverick": 17.0,
    "glm-4.5-air": 12.0,
    "kimi-k2": 32.0,
}
ACTIVE_ROUNDING = 0.025

SIGLIP_SO400M = 416866032
SIGLIP_WIDTH = 1152

DIGITS_OF_PARAMS_B = 6
BASE_POSITIONS = 2048


def exact_names() -> list[str]:
    return [name for name in model_names() if load_model(name).spec.published_parameters]


def sparse_names() -> list[str]:
    return [name for name in model_names() if load_model(name).spec.moe]


@pytest.mark.parametrize("name", model_names())
def test_a_preset_has_its_files_name_a_source_and_no_notes(name: str) -> None:
    model = load_model(name)
    assert (model.spec.name, bool(model.spec.source), model.notes) == (name, True, ())


@pytest.mark.parametrize("name", exact_names())
def test_a_preset_counts_what_is_published_to_the_digit(name: str) -> None:
    spec = load_model(name).spec
    assert spec.parameters == spec.published_parameters


@pytest.mark.parametrize(("name", "billions"), ROUNDED.items())
def test_a_preset_counts_what_is_published_rounded(name: str, billions: float) -> None:
    counted = load_model(name).spec.parameters / 1e9
    assert round(counted, 1) == billions or counted == pytest.approx(billions, rel=ROUNDING)


@pytest.mark.parametrize(("name", "total"), GEMMA3_TOTALS.items())
def test_gemma3_text_and_vision_tower_make_the_published_total(name: str, total: int) -> None:
    spec = load_model(name).spec
    projector = spec.hidden_size * SIGLIP_WIDTH + SIGLIP_WIDTH
    assert spec.parameters + SIGLIP_SO400M + projector == total


@pytest.mark.parametrize(("name", "total"), LLAMA4_TOTALS.items())
def test_llama4_text_and_vision_tower_make_the_published_total(name: str, total: int) -> None:
    tower = 34 * LLAMA4_VISION_LAYER + LLAMA4_VISION_ENDS + LLAMA4_PROJECTOR
    assert load_model(name).spec.parameters + tower == total


@pytest.mark.parametrize(("name", "total"), CHECKPOINTS.items())
def test_a_checkpoint_holds_the_model_the_mtp_module_and_its_copies(name: str, total: int) -> None:
    spec = load_model(name).spec
    copies = 2 * spec.vocab_size * spec.hidden_size
    assert spec.parameters + spec.mtp_parameters + copies == total


def test_every_preset_is_checked_against_a_published_count() -> None:
    checked = {*exact_names(), *ROUNDED, *GEMMA3_TOTALS, *LLAMA4_TOTALS}
    assert checked == set(model_names())


@pytest.mark.parametrize("name", sparse_names())
def test_a_preset_meets_the_published_active_parameters(name: str) -> None:
    spec = load_model(name).spec
    assert spec.published_active_parameters in (None, spec.active_parameters)


@pytest.mark.parametrize(("name", "billions"), ACTIVE.items())
def test_published_active_parameters_leave_out_at_most_embedding_and_head(
    name: str, billions: float
) -> None:
    spec = load_model(name).spec
    most = spec.active_parameters / 1e9
    least = most - (spec.embedding_parameters + spec.head_parameters) / 1e9
    assert least * (1 - ACTIVE_ROUNDING) <= billions <= most * (1 + ACTIVE_ROUNDING)


def test_every_mixture_but_grok_is_checked_against_published_active_parameters() -> None:
    assert {*ACTIVE, "grok-1"} == set(sparse_names())


@needs_data
def test_mpt_presets_count_what_was_benchmarked_to_six_digits() -> None:
    with (data_folder() / "steps" / "llmfoundry.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wrong = [
        (row["model"], row["seq_len"], row["params_b"], counted)
        for row in rows
        if (counted := mpt_billions(row)) != row["params_b"]
    ]
    assert wrong == []


def mpt_billions(row: dict[str, str]) -> str:
    """Return the preset's count with a table of positions as long as the row's sequences."""
    spec = load_model(row["model"].lower()).spec
    positions = (int(row["seq_len"]) - BASE_POSITIONS) * spec.hidden_size
    return f"{(spec.parameters + positions) / 1e9:.{DIGITS_OF_PARAMS_B}g}"


def test_a_misspelt_preset_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"did you mean 'llama3.1-8b'"):
        load_model("llama-3.1-8b")


@pytest.mark.parametrize("name", ["", "\0", "x" * 5000, "no-such.toml", "no/such/config.json"])
def test_a_name_that_leads_nowhere_is_an_input_error(name: str) -> None:
    with pytest.raises(InputError):
        load_model(name)


def test_own_toml_is_read_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN.format(published=1240))
    assert load_model("own.toml", relative_to=tmp_path).spec.parameters == 1240


def test_a_count_that_differs_from_the_published_one_is_noted(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN.format(published=1000))
    assert load_model("own.toml", relative_to=tmp_path).notes == (
        "counts 1240 parameters, but 1000 are published",
    )


def test_an_active_count_that_differs_from_the_published_one_is_noted(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(
        "published_active_parameters = 1000" + OWN.format(published=1240)
    )
    assert load_model("own.toml", relative_to=tmp_path).notes == (
        "counts 1240 active parameters, but 1000 are published",
    )


def test_a_folder_stands_for_its_config_json(tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "model_type": "gpt2",
        "n_embd": 8,
        "n_layer": 1,
        "n_head": 2,
        "vocab_size": 10,
    }
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    assert load_model("mine", relative_to=tmp_path).spec.name == "mine"


OWN = """
name = "own"
published_parameters = {published}
num_hidden_layers = 1
hidden_size = 10
intermediate_size = 20
num_attention_heads = 2
vocab_size = 40
tie_word_embeddings = true
gated_mlp = false
activation = "gelu"
norm = "rmsnorm"
norms_per_layer = 3
position = "alibi"
max_position_embeddings = 16
final_norm = true
"""
