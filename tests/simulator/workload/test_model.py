from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.files import parse_record
from simulator.workload.layer import AttentionSpec, LinearSpec, MlpSpec, QkNorm
from simulator.workload.model import LayerOverride, ModelSpec, Norm, Position
from simulator.workload.model_file import parse_model

TINY: dict[str, Any] = {
    "name": "tiny",
    "num_hidden_layers": 6,
    "hidden_size": 10,
    "intermediate_size": 40,
    "num_attention_heads": 2,
    "vocab_size": 100,
    "tie_word_embeddings": True,
    "gated_mlp": False,
    "activation": "gelu",
    "norm": "layernorm",
    "norm_bias": True,
    "position": "learned",
    "max_position_embeddings": 7,
}


def tiny(**changes: Any) -> ModelSpec:
    return parse_model({**TINY, **changes}, "tiny.toml")


def problem_keys(data: dict[str, Any]) -> list[str]:
    with pytest.raises(InputError) as caught:
        parse_model(data, "tiny.toml")
    return [problem.key for problem in caught.value.problems]


@st.composite
def specs(draw: st.DrawFn) -> ModelSpec:
    heads, layers = draw(st.sampled_from([1, 2, 4])), draw(st.integers(1, 8))
    flags = {
        key: draw(st.booleans())
        for key in (
            "tie_word_embeddings",
            "gated_mlp",
            "mlp_bias",
            "attention_bias",
            "attention_output_bias",
            "lm_head_bias",
            "norm_bias",
            "final_norm",
            "embedding_norm",
        )
    }
    kinds = st.sampled_from(["normal", "none", "linear"])
    override = {
        "layers": [draw(st.integers(0, layers - 1))],
        "attention": draw(kinds),
        "mlp": draw(kinds),
    }
    return tiny(
        **flags,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=draw(st.sampled_from([n for n in (1, 2, 4) if heads % n == 0])),
        head_dim=draw(st.integers(1, 16)),
        norm=draw(st.sampled_from([kind.value for kind in Norm])),
        qk_norm=draw(st.sampled_from([kind.value for kind in QkNorm])),
        norms_per_layer=draw(st.sampled_from([2, 4])),
        position=draw(st.sampled_from([kind.value for kind in Position])),
        layer_overrides=draw(st.sampled_from([[], [override]])),
    )


def test_parameters_of_a_gpt_layer_match_hand_arithmetic() -> None:
    spec = tiny(mlp_bias=True, attention_bias=True, attention_output_bias=True)
    # 12 h^2 weights and 13 h biases and norms: Narayanan et al. 2021, section 5.1.
    assert spec.layers()[0].parameters == 12 * 100 + 13 * 10


def test_total_is_layers_embeddings_and_final_norm() -> None:
    spec = tiny()
    assert spec.parameters == 6 * (12 * 100 + 4 * 10) + 100 * 10 + 7 * 10 + 2 * 10


def test_untying_adds_one_more_vocabulary_matrix() -> None:
    assert tiny(tie_word_embeddings=False).parameters - tiny().parameters == 100 * 10


@pytest.mark.parametrize(
    ("changes", "extra"),
    [
        ({"lm_head_bias": True}, 100),
        ({"embedding_norm": True}, 20),
        ({"final_norm": False}, -20),
        ({"learned_positions": 9}, 20),
        ({"norms_per_layer": 4}, 6 * 40),
        ({"qk_norm": "per-head"}, 6 * 2 * 5),
        ({"qk_norm": "full-width"}, 6 * 2 * 10),
        ({"gated_mlp": True}, 6 * 400),
        ({"num_key_value_heads": 1}, -6 * 100),
        ({"head_dim": 10}, 6 * 400),
    ],
)
def test_each_choice_changes_the_count_by_its_own_weights(
    changes: dict[str, Any], extra: int
) -> None:
    assert tiny(**changes).parameters - tiny().parameters == extra


@given(specs())
def test_sharded_replicated_and_ends_add_up_to_the_model(spec: ModelSpec) -> None:
    layers = sum(layer.sharded_parameters + layer.replicated_parameters for layer in spec.layers())
    ends = spec.embedding_parameters + spec.final_norm_parameters + spec.head_parameters
    assert layers + ends == spec.parameters


@given(specs(), st.integers(0, 8), st.integers(0, 8))
def test_layer_groups_count_each_layer_of_the_range_once(
    spec: ModelSpec, first: int, stop: int
) -> None:
    groups = spec.layer_groups(first, stop)
    assert sum(groups.values()) == len(spec.layers()[first:stop])


@given(specs())
def test_json_round_trip(spec: ModelSpec) -> None:
    assert parse_record(ModelSpec, spec.model_dump(mode="json"), "json") == spec


def test_tensor_parallelism_shards_matrices_and_column_biases_only() -> None:
    mlp = MlpSpec(hidden_size=10, intermediate_size=40, gated=True, activation="silu", bias=True)
    assert (mlp.sharded_parameters, mlp.replicated_parameters) == (3 * 400 + 2 * 40, 10)


def test_attention_replicates_output_bias_and_shared_head_norms() -> None:
    attention = AttentionSpec(
        hidden_size=10,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=5,
        qkv_bias=True,
        output_bias=True,
        qk_norm=QkNorm.PER_HEAD,
    )
    assert (attention.sharded_parameters, attention.replicated_parameters) == (
        (200 + 20) + 2 * (100 + 10) + 200,
        10 + 2 * 5,
    )


def test_every_nth_layer_of_a_pattern_is_full() -> None:
    windows = [
        layer.attention.window
        for layer in tiny(sliding_window=4, sliding_window_pattern=3).layers()
        if isinstance(layer.attention, AttentionSpec)
    ]
    assert windows == [4, 4, None, 4, 4, None]


def test_equal_layers_are_one_group() -> None:
    assert list(tiny().layer_groups().values()) == [6]


def test_overrides_replace_blocks_and_drop_the_norms_of_absent_ones() -> None:
    spec = tiny(
        layer_overrides=[
            {"layers": [1], "attention": "none", "intermediate_size": 20},
            {"layers": [4], "attention": "linear", "mlp": "none"},
        ]
    )
    shapes = [(layer.attention, layer.norms) for layer in (spec.layers()[1], spec.layers()[4])]
    assert shapes == [(None, 1), (LinearSpec(hidden_size=10), 1)]


def test_replacing_a_field_of_a_used_spec_changes_its_layers() -> None:
    spec = tiny()
    spec.layers()
    changed = spec.model_copy(update={"num_hidden_layers": 2})
    assert len(changed.layers()) == 2


def test_overrides_are_records_too() -> None:
    spec = tiny(layer_overrides=[{"layers": [0], "num_key_value_heads": 1}])
    assert spec.layer_overrides == (LayerOverride(layers=(0,), num_key_value_heads=1),)


def test_all_wrong_keys_of_a_file_are_reported_at_once() -> None:
    wrong = {**TINY, "num_hidden_layers": 0, "vocab_size": "many", "norm": "batchnorm"}
    assert problem_keys(wrong) == ["num_hidden_layers", "vocab_size", "norm"]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"hidden_size": 11}, "hidden_size"),
        ({"num_attention_heads": 10, "num_key_value_heads": 3}, "num_key_value_heads"),
        ({"num_hidden_layers": 10_001}, "num_hidden_layers"),
        ({"hidden_size": -1}, "hidden_size"),
        ({"vocab_size": float("nan")}, "vocab_size"),
        ({"vocab_size": 1e30}, "vocab_size"),
        ({"num_attention_heads": True}, "num_attention_heads"),
        ({"layer_types": ["full_attention"]}, "layer_types"),
        ({"layer_types": ["sliding_attention"] * 6}, "layer_types"),
        ({"layer_overrides": [{"layers": [6]}]}, "layer_overrides"),
        ({"layer_overrides": [{"layers": [1]}, {"layers": [1]}]}, "layer_overrides"),
        ({"no_rope_layers": [6]}, "no_rope_layers"),
        ({"hiden_size": 10}, "hiden_size"),
    ],
)
def test_one_wrong_value_is_reported_at_its_key(changes: dict[str, Any], key: str) -> None:
    assert problem_keys({**TINY, **changes}) == [key]


def test_a_wrong_number_of_groups_lists_the_legal_ones() -> None:
    with pytest.raises(InputError) as caught:
        tiny(num_attention_heads=10, num_key_value_heads=3)
    assert caught.value.problems[0].fix == "use one of 1, 2, 5, 10"
