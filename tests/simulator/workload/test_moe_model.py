from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.files import parse_record
from simulator.workload.layer import (
    AttentionSpec,
    LayerSpec,
    MlaSpec,
    MlpSpec,
    MoeSpec,
    Norm,
    QkNorm,
)
from simulator.workload.model import ModelSpec
from simulator.workload.model_file import parse_model

MOE: dict[str, Any] = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 5}
MLA: dict[str, Any] = {
    "q_lora_rank": 6,
    "kv_lora_rank": 4,
    "qk_nope_head_dim": 3,
    "qk_rope_head_dim": 2,
    "v_head_dim": 3,
}
TINY: dict[str, Any] = {
    "name": "tiny",
    "num_hidden_layers": 4,
    "hidden_size": 10,
    "intermediate_size": 40,
    "num_attention_heads": 2,
    "vocab_size": 100,
    "tie_word_embeddings": False,
    "gated_mlp": True,
    "activation": "silu",
    "norm": "rmsnorm",
    "position": "rope",
    "max_position_embeddings": 64,
}
EXPERT = 3 * 10 * 5
ATTENTION = 4 * 100
ENDS = 2 * 100 * 10 + 10


def tiny(**changes: Any) -> ModelSpec:
    return parse_model({**TINY, **changes}, "tiny.toml")


def moe(**changes: Any) -> dict[str, Any]:
    return {**MOE, **changes}


@st.composite
def mixtures(draw: st.DrawFn) -> ModelSpec:
    groups, each = draw(st.sampled_from([1, 2, 4])), draw(st.integers(1, 4))
    topk_group = draw(st.integers(1, groups))
    layers = draw(st.integers(1, 5))
    shared = draw(st.integers(0, 9))
    experts = {
        "num_experts": groups * each,
        "num_experts_per_tok": draw(st.integers(1, topk_group * each)),
        "moe_intermediate_size": draw(st.integers(1, 9)),
        "shared_expert_intermediate_size": shared,
        "shared_expert_gate": shared > 0 and draw(st.booleans()),
        "router_bias": draw(st.booleans()),
        "expert_bias": draw(st.booleans()),
        "n_group": groups,
        "topk_group": topk_group,
        "dense_layers": list(range(draw(st.integers(0, layers - 1)))),
    }
    attention = draw(st.sampled_from([{}, {"mla": MLA}, {"mla": {**MLA, "q_lora_rank": None}}]))
    return tiny(
        moe=experts,
        num_hidden_layers=layers,
        gated_mlp=draw(st.booleans()),
        attention_bias=draw(st.booleans()),
        num_nextn_predict_layers=draw(st.integers(0, 2)),
        **attention,
    )


def test_a_mixture_counts_experts_router_and_all_else_once() -> None:
    layer = ATTENTION + 8 * EXPERT + 8 * 10 + 2 * 10
    assert tiny(moe=MOE).parameters == 4 * layer + ENDS


def test_a_token_meets_its_own_experts_and_all_else() -> None:
    layer = ATTENTION + 2 * EXPERT + 8 * 10 + 2 * 10
    assert tiny(moe=MOE).active_parameters == 4 * layer + ENDS


def test_a_dense_model_is_active_throughout() -> None:
    assert tiny().active_parameters == tiny().parameters


@pytest.mark.parametrize(
    ("changes", "total", "active"),
    [
        ({"router_bias": True}, 4 * 8, 4 * 8),
        ({"shared_expert_intermediate_size": 7}, 4 * 210, 4 * 210),
        (
            {"shared_expert_intermediate_size": 7, "shared_expert_gate": True},
            4 * (210 + 10),
            4 * (210 + 10),
        ),
        # Two column biases of 5 and one row bias of 10 an expert.
        ({"expert_bias": True}, 4 * 8 * 20, 4 * 2 * 20),
        (
            {"expert_bias": True, "shared_expert_intermediate_size": 7},
            4 * (8 * 20 + 210 + 24),
            4 * (2 * 20 + 210 + 24),
        ),
        # A dense layer trades 8 experts and the router for an MLP of 40.
        (
            {"dense_layers": [0, 2]},
            2 * (1200 - 8 * EXPERT - 80),
            2 * (1200 - 2 * EXPERT - 80),
        ),
    ],
)
def test_each_choice_of_a_mixture_adds_its_own_weights(
    changes: dict[str, Any], total: int, active: int
) -> None:
    plain, changed = tiny(moe=MOE), tiny(moe=moe(**changes))
    assert (
        changed.parameters - plain.parameters,
        changed.active_parameters - plain.active_parameters,
    ) == (total, active)


def test_dense_layers_keep_the_wide_mlp() -> None:
    kinds = [type(layer.mlp) for layer in tiny(moe=moe(dense_layers=[0])).layers()]
    assert kinds == [MlpSpec, MoeSpec, MoeSpec, MoeSpec]


def test_tensor_parallelism_divides_the_shared_expert_and_repeats_the_router() -> None:
    block = MoeSpec(
        hidden_size=10,
        experts=8,
        experts_per_token=2,
        intermediate_size=5,
        gated=True,
        activation="silu",
        bias=True,
        shared_intermediate_size=7,
        shared_gate=True,
        router_bias=True,
    )
    assert (
        block.expert_parameters,
        block.sharded_parameters,
        block.replicated_parameters,
    ) == (8 * (EXPERT + 2 * 5 + 10), 3 * 10 * 7 + 2 * 7, 8 * 11 + 10 + 10)


def test_latent_attention_counts_its_projections_and_norms() -> None:
    # Heads of 3 + 2: down 10 x (6 + 4 + 2), up 6 x 2 x 5 and 4 x 2 x (3 + 3), out 2 x 3 x 10,
    # norms of the latents 6 + 4.
    attention = tiny(mla=MLA).layers()[0].attention
    assert isinstance(attention, MlaSpec)
    assert (attention.replicated_parameters, attention.sharded_parameters) == (
        120 + 10,
        60 + 48 + 60,
    )


def test_latent_attention_without_a_query_rank_projects_the_hidden_state() -> None:
    attention = tiny(mla={**MLA, "q_lora_rank": None}).layers()[0].attention
    assert isinstance(attention, MlaSpec)
    assert (attention.replicated_parameters, attention.sharded_parameters) == (
        10 * (4 + 2) + 4,
        100 + 48 + 60,
    )


def test_biases_of_latent_attention_are_of_the_down_and_output_projections() -> None:
    plain = tiny(mla=MLA)
    biased = tiny(mla=MLA, attention_bias=True, attention_output_bias=True)
    assert biased.parameters - plain.parameters == 4 * (6 + 4 + 2 + 10)


def test_latent_attention_fills_in_heads_and_their_width() -> None:
    spec = tiny(mla=MLA, hidden_size=11)
    assert (spec.head_dim, spec.num_key_value_heads) == (5, 2)


def test_sinks_are_a_number_a_head() -> None:
    assert tiny(attention_sinks=True).parameters - tiny().parameters == 4 * 2


def test_a_module_that_predicts_ahead_is_a_layer_a_projection_and_three_norms() -> None:
    spec = tiny(moe=moe(dense_layers=[0]), num_nextn_predict_layers=2)
    module = spec.layers()[-1].parameters + 2 * 10 * 10 + 3 * 10
    assert (spec.mtp_parameters, spec.mtp_layer()) == (2 * module, spec.layers()[-1])


def test_modules_that_predict_ahead_are_not_of_the_model() -> None:
    assert tiny(num_nextn_predict_layers=1).parameters == tiny().parameters


def test_chunked_layers_have_a_chunk_and_no_window() -> None:
    spec = tiny(
        layer_types=["chunked_attention"] * 3 + ["full_attention"],
        attention_chunk_size=16,
        no_rope_layers=[3],
    )
    lengths = [
        (layer.attention.chunk, layer.attention.window, layer.attention.rope)
        for layer in spec.layers()
        if isinstance(layer.attention, AttentionSpec)
    ]
    assert lengths == [(16, None, True)] * 3 + [(None, None, False)]


def test_norms_without_weights_are_in_layers_with_rotary_embeddings_only() -> None:
    spec = tiny(qk_norm="nonparametric", no_rope_layers=[3])
    norms = [
        layer.attention.qk_norm
        for layer in spec.layers()
        if isinstance(layer.attention, AttentionSpec)
    ]
    assert (norms, spec.parameters) == (
        [QkNorm.NONPARAMETRIC] * 3 + [QkNorm.NONE],
        tiny().parameters,
    )


@given(mixtures())
def test_the_parts_of_a_mixture_add_up(spec: ModelSpec) -> None:
    layers = sum(
        layer.sharded_parameters + layer.replicated_parameters + layer.expert_parameters
        for layer in spec.layers()
    )
    assert layers + ENDS == spec.parameters


@given(mixtures())
def test_active_parameters_are_all_only_where_every_expert_is_chosen(spec: ModelSpec) -> None:
    assert spec.moe is not None
    everything = spec.moe.num_experts_per_tok == spec.moe.num_experts
    assert (spec.active_parameters == spec.parameters) == everything


@given(mixtures())
def test_a_mixture_survives_json(spec: ModelSpec) -> None:
    assert parse_record(ModelSpec, spec.model_dump(mode="json"), "json") == spec


def test_a_layer_without_experts_has_no_expert_parameters() -> None:
    layer = LayerSpec(hidden_size=10, attention=None, mlp=None, norm=Norm.RMSNORM, norms=1)
    assert (layer.expert_parameters, layer.active_parameters) == (0, 10)


@pytest.mark.parametrize(
    ("changes", "key", "fix"),
    [
        ({"moe": moe(num_experts_per_tok=9)}, "moe.num_experts_per_tok", "use 8 or fewer"),
        ({"moe": moe(n_group=3)}, "moe.n_group", "use 2"),
        ({"moe": moe(n_group=16)}, "moe.n_group", "use 8"),
        ({"moe": moe(n_group=4, topk_group=5)}, "moe.topk_group", "use 1 to 4"),
        ({"moe": moe(n_group=8)}, "moe.topk_group", "use 2 to 8"),
        ({"moe": moe(topk_group=2)}, "moe.topk_group", "use 1 to 1"),
        ({"moe": moe(dense_layers=[4])}, "moe", "use 0 to 3"),
        ({"moe": moe(dense_layers=[1, 0, 1])}, "moe.dense_layers", "use [0, 1]"),
        (
            {"moe": moe(dense_layers=[0, 1, 2, 3])},
            "moe",
            "use at most 3 dense layers, or no moe",
        ),
        ({"moe": moe(shared_expert_gate=True)}, "moe.shared_expert_gate", "use false"),
        (
            {"moe": MOE, "layer_overrides": [{"layers": [1], "intermediate_size": 9}]},
            "layer_overrides",
            "use moe.dense_layers with 1, or no intermediate_size",
        ),
        (
            {"layer_types": ["chunked_attention"] * 4},
            "layer_types",
            "use a number of tokens",
        ),
        (
            {"attention_chunk_size": 8},
            "layer_types",
            'use "chunked_attention" for some layer, or no attention_chunk_size',
        ),
        (
            {"mla": MLA, "sliding_window": 8},
            "mla",
            "use no sliding_window",
        ),
        ({"mla": MLA, "head_dim": 4}, "mla", "use head_dim 5"),
        (
            {"mla": MLA, "num_key_value_heads": 1},
            "mla",
            "use num_key_value_heads 2",
        ),
        (
            {"mla": MLA, "attention_sinks": True},
            "mla",
            "use attention_sinks false",
        ),
        ({"mla": MLA, "position": "alibi"}, "mla", "use position rope"),
        (
            {"mla": MLA, "layer_overrides": [{"layers": [1], "num_attention_heads": 4}]},
            "layer_overrides",
            "use the model's num_attention_heads",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_with_a_fix(
    changes: dict[str, Any], key: str, fix: str
) -> None:
    with pytest.raises(InputError) as caught:
        tiny(**changes)
    assert [(problem.key, problem.fix) for problem in caught.value.problems] == [(key, fix)]


def test_overrides_of_dense_layers_and_of_absent_blocks_go_with_experts() -> None:
    spec = tiny(
        moe=moe(dense_layers=[0]),
        layer_overrides=[
            {"layers": [0], "intermediate_size": 20},
            {"layers": [1], "mlp": "none"},
        ],
    )
    widths = [getattr(layer.mlp, "intermediate_size", None) for layer in spec.layers()]
    assert widths == [20, None, 5, 5]
