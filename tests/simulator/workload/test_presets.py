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
SIGLIP_SO400M = 416866032
SIGLIP_WIDTH = 1152

DIGITS_OF_PARAMS_B = 6
BASE_POSITIONS = 2048


def exact_names() -> list[str]:
    return [name for name in model_names() if load_model(name).spec.published_parameters]


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


def test_every_preset_is_checked_against_a_published_count() -> None:
    assert {*exact_names(), *ROUNDED, *GEMMA3_TOTALS} == set(model_names())


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
