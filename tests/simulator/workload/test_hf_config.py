from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError, UnsupportedError
from simulator.workload.architectures.registry import ARCHITECTURES, UNSUPPORTED
from simulator.workload.hf_config import import_config, parse_config
from simulator.workload.layer import AttentionSpec, MlpSpec
from simulator.workload.model import ModelSpec
from tests.data import data_folder, needs_data

ROWS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "published_configs.json").read_text(encoding="utf-8")
)
CONFIGS: dict[str, dict[str, Any]] = {row["name"]: row["config"] for row in ROWS}
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.48.3",
    "use_cache": True,
}
CASES = {
    "meta-llama--Meta-Llama-3.1-70B": "llama3.1-70b",
    "Qwen--Qwen3-0.6B": "qwen3-0.6b",
    "nvidia--Llama-3_3-Nemotron-Super-49B-v1": "nemotron-super-49b",
    "Qwen--Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen--Qwen3-VL-30B-A3B-Instruct": "qwen3-vl-30b-a3b-text",
    "deepseek-ai--DeepSeek-V3": "deepseek-v3",
    "mistralai--Mixtral-8x7B-v0.1": "mixtral-8x7b",
    "openai--gpt-oss-20b": "gpt-oss-20b",
    "zai-org--GLM-4.5-Air": "glm-4.5-air",
}


def spec_of(config: Any) -> ModelSpec:
    return parse_config(config, "config.json").spec


def notes_of(config: Any) -> str:
    return "; ".join(parse_config(config, "config.json").notes)


def problem_keys(config: Any) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse_config(config, "config.json")
    return [problem.key for problem in caught.value.problems]


def windows_of(spec: ModelSpec) -> list[int | None]:
    return [
        layer.attention.window
        for layer in spec.layers()
        if isinstance(layer.attention, AttentionSpec)
    ]


def case_file(name: str) -> Path:
    return data_folder() / "cases" / "hf" / f"{name}.json"


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_a_published_config_counts_its_published_parameters(row: dict[str, Any]) -> None:
    assert spec_of(row["config"]).parameters == row["parameters"]


@needs_data
@pytest.mark.parametrize(("file", "key"), CASES.items())
def test_reported_configs_count_to_the_digit(file: str, key: str) -> None:
    listed = json.loads((data_folder() / "cases/hf/expected_params.json").read_text())[key]
    expected = listed if isinstance(listed, list) else [listed]
    spec = import_config(case_file(file)).spec
    counted = [spec.parameters, spec.active_parameters, spec.mtp_parameters]
    assert counted[: len(expected)] == expected


@needs_data
def test_every_reported_config_has_an_expected_count() -> None:
    files = {path.stem for path in (data_folder() / "cases" / "hf").glob("*--*.json")}
    assert files == CASES.keys()


def test_keys_that_change_nothing_leave_no_note() -> None:
    assert notes_of({**LLAMA, "max_position_embeddings": 8192, "hidden_act": "silu"}) == (
        "not in the file, the library's default is used: tie_word_embeddings = False"
    )


def test_the_librarys_default_of_a_missing_key_is_named() -> None:
    assert "max_position_embeddings = 2048" in notes_of(LLAMA)


@pytest.mark.parametrize(
    ("model_type", "tied"),
    [
        ("llama", False),
        ("gemma", True),
        ("cohere", True),
        ("qwen2", False),
        ("starcoder2", True),
        ("gpt_neox", False),
    ],
)
def test_tying_follows_the_architectures_own_default(model_type: str, tied: bool) -> None:
    config = {**LLAMA, "model_type": model_type, "head_dim": 8}
    assert spec_of(config).tie_word_embeddings == tied


def test_head_dim_stands_apart_from_hidden_size() -> None:
    layer = spec_of({**LLAMA, "head_dim": 24}).layers()[0]
    assert isinstance(layer.attention, AttentionSpec)
    assert layer.attention.query_width == 8 * 24


def test_null_key_value_heads_mean_one_for_each_query_head() -> None:
    assert spec_of({**LLAMA, "num_key_value_heads": None}).num_key_value_heads == 8


def test_multi_query_has_one_key_value_head() -> None:
    assert spec_of(CONFIGS["starcoder"]).num_key_value_heads == 1


def test_mistral_slides_unless_its_window_is_null() -> None:
    mistral = {**LLAMA, "model_type": "mistral"}
    windows = [spec_of({**mistral, "sliding_window": w}).sliding_window for w in (16, None)]
    assert windows == [16, None]


def test_gemma3_has_one_full_layer_in_six() -> None:
    gemma = {**LLAMA, "model_type": "gemma3_text", "num_hidden_layers": 7, "sliding_window": 16}
    assert windows_of(spec_of(gemma)) == [16] * 5 + [None, 16]


def test_qwen2_slides_above_max_window_layers_when_it_is_told_to() -> None:
    qwen = {**LLAMA, "model_type": "qwen2", "sliding_window": 16, "max_window_layers": 3}
    windows = [windows_of(spec_of({**qwen, "use_sliding_window": flag})) for flag in (False, True)]
    assert windows == [[None] * 4, [None, None, None, 16]]


def test_exaone4_spells_its_windows() -> None:
    exaone = {**LLAMA, "model_type": "exaone4", "sliding_window_pattern": "LG"}
    assert windows_of(spec_of({**exaone, "sliding_window": 16})) == [16, None, 16, None]


def test_smollm3_has_no_rotary_embedding_in_every_fourth_layer() -> None:
    ropes = [
        layer.attention.rope
        for layer in spec_of({**LLAMA, "model_type": "smollm3"}).layers()
        if isinstance(layer.attention, AttentionSpec)
    ]
    assert ropes == [True, True, True, False]


def test_openelm_grows_from_layer_to_layer() -> None:
    widths = [
        layer.mlp.intermediate_size
        for layer in spec_of(CONFIGS["openelm-270m"]).layers()
        if isinstance(layer.mlp, MlpSpec)
    ]
    assert (widths[0], widths[-1]) == (768, 5120)


def test_decilm_lists_its_key_value_heads() -> None:
    config = {
        **LLAMA,
        "model_type": "deci",
        "num_key_value_heads": None,
        "num_key_value_heads_per_layer": [4, 2, 2, 1],
    }
    heads = [
        layer.attention.num_key_value_heads
        for layer in spec_of(config).layers()
        if isinstance(layer.attention, AttentionSpec)
    ]
    assert heads == [4, 2, 2, 1]


def block(attention: dict[str, Any], ffn: dict[str, Any]) -> dict[str, Any]:
    return {"attention": attention, "ffn": ffn}


def nas(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {
        **LLAMA,
        "model_type": "nemotron-nas",
        "num_hidden_layers": len(blocks),
        "num_key_value_heads": None,
        "intermediate_size": None,
        "block_configs": list(blocks),
    }


def test_searched_layers_lose_or_replace_their_blocks() -> None:
    config = nas(
        block({"n_heads_in_group": 4}, {"ffn_mult": 2.0}),
        block({"n_heads_in_group": None, "no_op": True}, {"ffn_mult": 6.0}),
        block({"replace_with_linear": True}, {"no_op": True}),
    )
    # h = 64: 2/3 x 2 x 64 rounds up to 256, 2/3 x 6 x 64 = 256; the linear block is h x h.
    attention, mlp, linear = 2 * 64 * 64 + 2 * 64 * 16, 3 * 64 * 256, 64 * 64
    layers = (attention + mlp + 2 * 64) + (mlp + 64) + (linear + 64)
    assert spec_of(config).parameters == layers + 2 * 1000 * 64 + 64


@pytest.mark.parametrize(
    ("attention", "ffn", "key"),
    [
        ({"n_heads_in_group": 3}, {"ffn_mult": 1.0}, "block_configs.0.attention.n_heads_in_group"),
        ({"n_heads_in_group": 4}, {}, "block_configs.0.ffn.ffn_mult"),
        ({"no_op": True}, {"ffn_mult": -1.0}, "block_configs.0.ffn.ffn_mult"),
        ({"no_op": True, "sparse": 1}, {"ffn_mult": 1.0}, "block_configs.0.attention.sparse"),
        (
            {"n_heads_in_group": 4, "window_length": 9},
            {"ffn_mult": 1.0},
            "block_configs.0.attention.window_length",
        ),
    ],
)
def test_wrong_blocks_are_reported_at_their_key(
    attention: dict[str, Any], ffn: dict[str, Any], key: str
) -> None:
    assert problem_keys(nas(block(attention, ffn))) == [key]


def test_a_nested_text_config_is_read_and_the_rest_noted() -> None:
    outer = {"model_type": "mistral3", "text_config": {**LLAMA, "model_type": "mistral"}}
    model = parse_config({**outer, "vision_config": {"hidden_size": 9}}, "config.json")
    assert (model.spec.hidden_size, model.notes[0]) == (
        64,
        "only the language model in text_config is taken; all else of 'mistral3' is left out",
    )


def test_gemma3_leaves_sizes_of_its_text_config_to_the_library() -> None:
    text = {
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "model_type": "gemma3_text",
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    assert spec_of({"model_type": "gemma3", "text_config": text}).parameters == 3880263168


def test_the_outer_tie_holds_where_the_text_config_has_none() -> None:
    text = {**LLAMA, "model_type": "qwen3_vl_text"}
    outer = {"model_type": "qwen3_vl", "text_config": text, "tie_word_embeddings": True}
    assert spec_of(outer).tie_word_embeddings


def test_a_flat_vision_language_config_notes_the_tower() -> None:
    config = {**LLAMA, "model_type": "qwen2_vl", "vision_config": {"depth": 32}}
    assert "vision_config: vision and audio towers are left out" in notes_of(config)


def test_the_class_names_the_architecture_where_model_type_is_missing() -> None:
    config = {key: value for key, value in LLAMA.items() if key != "model_type"}
    assert spec_of(config).parameters == spec_of(LLAMA).parameters


@pytest.mark.parametrize("name", sorted(UNSUPPORTED))
def test_an_architecture_that_is_not_modelled_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedError, match="not modelled yet"):
        parse_config({**LLAMA, "model_type": name}, "config.json")


def test_no_architecture_is_both_modelled_and_not() -> None:
    assert not ARCHITECTURES.keys() & UNSUPPORTED.keys()


@pytest.mark.parametrize(
    "change",
    [
        {"num_experts": 8},
        {"num_local_experts": 8},
        {"moe_intermediate_size": 768},
        {"kv_lora_rank": 512},
        {"ssm_state_size": 16},
        {"mamba_d_conv": 4},
        {"is_encoder_decoder": True},
        {"add_cross_attention": True},
        {"num_nextn_predict_layers": 1},
        {"num_kv_shared_layers": 2},
        {"block_sparse_attention": True},
        {"ffn_dim_multiplier_by_layer": [1, 2]},
        {"value_head_dim": 32},
    ],
)
def test_keys_that_change_what_is_computed_are_refused_by_name(change: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse_config({**LLAMA, **change}, "config.json")
    assert [problem.key for problem in caught.value.problems] == list(change)


@pytest.mark.parametrize("value", [None, False, 0, []])
def test_a_key_that_asks_for_nothing_is_not_refused(value: object) -> None:
    assert spec_of({**LLAMA, "num_experts": value}) == spec_of(LLAMA)


def test_a_key_that_states_what_is_fixed_is_refused_only_where_it_disagrees() -> None:
    cohere = {**LLAMA, "model_type": "cohere2"}
    spec_of({**cohere, "use_parallel_block": True})
    assert problem_keys({**cohere, "use_parallel_block": 2}) == ["use_parallel_block"]


def test_an_unknown_key_that_looks_harmless_is_noted() -> None:
    assert "unknown key favourite_colour = 'blue' is ignored" in notes_of(
        {**LLAMA, "favourite_colour": "blue"}
    )


def test_a_key_of_another_architecture_is_noted() -> None:
    assert "multi_query = True is ignored" in notes_of(
        {**LLAMA, "model_type": "phi3", "multi_query": True}
    )


def test_opt_with_a_projected_embedding_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="word_embed_proj_dim"):
        parse_config({**CONFIGS["opt-125m"], "word_embed_proj_dim": 512}, "config.json")


@pytest.mark.parametrize(
    ("name", "change", "keys"),
    [
        ("gpt-j-6b", {"n_head": 0}, ["n_head"]),
        ("gpt-j-6b", {"n_embd": "wide"}, ["n_embd"]),
        ("gpt-j-6b", {"n_embd": 4097}, ["n_embd"]),
        ("falcon-40b", {"num_kv_heads": 7}, ["num_kv_heads"]),
        ("falcon-40b", {"num_hidden_layers": 10**10}, ["num_hidden_layers"]),
        ("mpt-7b", {"n_layers": -1, "d_model": 1.5}, ["d_model", "n_layers"]),
        ("mpt-7b", {"attn_config": {"qk_ln": True}}, ["attn_config.qk_ln"]),
        ("mpt-7b", {"attn_config": {"attn_type": "x"}}, ["attn_config.attn_type"]),
        ("starcoder", {"multi_query": 1}, ["multi_query"]),
        ("bloom-7b1", {"hidden_size": 5}, ["n_embed"]),
        ("phi-2", {"vocab_size": math.nan}, ["vocab_size"]),
        ("phi-2", {"vocab_size": None}, ["vocab_size"]),
        ("gpt-neo-1.3b", {"attention_types": [[["global"], 9999]] * 99}, ["attention_types"]),
    ],
)
def test_a_wrong_value_is_reported_at_the_files_own_key(
    name: str, change: dict[str, Any], keys: list[str]
) -> None:
    assert problem_keys({**CONFIGS[name], **change}) == keys


@pytest.mark.parametrize(
    "key",
    ["num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size"],
)
def test_a_missing_size_is_an_error_at_its_key(key: str) -> None:
    assert problem_keys({k: v for k, v in LLAMA.items() if k != key}) == [key]


def test_wrong_missing_and_refused_keys_are_reported_together() -> None:
    config = {**LLAMA, "hidden_size": -1, "vocab_size": None, "num_experts": 8}
    assert sorted(problem_keys(config)) == ["hidden_size", "num_experts", "vocab_size"]


def test_every_problem_says_where_what_and_how_to_fix_it() -> None:
    with pytest.raises(InputError) as caught:
        parse_config({**LLAMA, "hidden_size": -1, "num_attention_heads": 7.5}, "config.json")
    assert all(p.where and p.key and p.found and p.rule and p.fix for p in caught.value.problems)


@pytest.mark.parametrize("text", ["", "[]", "3", "null", "{", "[" * 100_000, '{"model_type": 3}'])
def test_a_file_that_is_no_config_is_an_input_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(InputError):
        import_config(tmp_path)


junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from([0, 1, 8, "full_attention", "sliding_attention"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["attention", "ffn", "alibi", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from(sorted(CONFIGS)), st.data())
def test_a_mutated_config_is_a_model_or_an_input_error(name: str, data: st.DataObject) -> None:
    config = dict(CONFIGS[name])
    architecture = ARCHITECTURES[config["model_type"]]
    keys = sorted({*config, *architecture.keys, *architecture.defaults, "text_config"})
    for key in data.draw(st.lists(st.sampled_from(keys), max_size=4)):
        config[key] = data.draw(junk)
    for key in data.draw(st.lists(st.sampled_from(keys), max_size=2)):
        config.pop(key, None)
    try:
        spec = spec_of(config)
    except InputError:
        return
    assert spec.parameters > 0


@given(st.sampled_from(sorted(CONFIGS)))
def test_an_imported_model_survives_json(name: str) -> None:
    spec = spec_of(CONFIGS[name])
    assert ModelSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize("name", ["JambaForCausalLM", "T5ForConditionalGeneration"])
def test_a_class_that_is_not_modelled_is_refused_whatever_the_model_type_says(name: str) -> None:
    config = {**LLAMA, "architectures": [name]}
    with pytest.raises(UnsupportedError) as caught:
        parse_config(config, "config.json")
    assert caught.value.problems[0].key == "architectures"
