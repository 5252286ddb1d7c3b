from __future__ import annotations

from typing import Any

import pytest

from simulator.errors import InputError, UnsupportedError
from simulator.workload.hf_config import parse_config
from simulator.workload.layer import AttentionSpec, MlaSpec, MlpSpec, MoeSpec, QkNorm
from simulator.workload.model import ModelSpec
from simulator.workload.model_parts import Experts

BASE: dict[str, Any] = {
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "num_experts_per_tok": 2,
    "router_aux_loss_coef": 0.01,
    "output_router_logits": False,
}
MIXTRAL = {**BASE, "model_type": "mixtral", "num_local_experts": 8}
QWEN3 = {
    **BASE,
    "model_type": "qwen3_moe",
    "num_experts": 8,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
}
QWEN2 = {**QWEN3, "model_type": "qwen2_moe", "shared_expert_intermediate_size": 48}
DEEPSEEK = {
    **BASE,
    "num_key_value_heads": 8,
    "model_type": "deepseek_v3",
    "n_routed_experts": 8,
    "n_shared_experts": 2,
    "moe_intermediate_size": 32,
    "first_k_dense_replace": 1,
    "n_group": 4,
    "topk_group": 2,
    "topk_method": "noaux_tc",
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "num_nextn_predict_layers": 1,
}
GPT_OSS = {
    **BASE,
    "model_type": "gpt_oss",
    "num_local_experts": 8,
    "experts_per_token": 2,
    "head_dim": 16,
}
LLAMA4 = {
    **BASE,
    "model_type": "llama4_text",
    "num_experts_per_tok": 1,
    "num_local_experts": 8,
    "intermediate_size_mlp": 320,
}
GLM = {
    **BASE,
    "model_type": "glm4_moe",
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "moe_intermediate_size": 32,
    "attention_bias": True,
    "use_qk_norm": True,
}
ERNIE = {
    **BASE,
    "model_type": "ernie4_5_moe",
    "moe_num_experts": 8,
    "moe_num_shared_experts": 2,
    "moe_intermediate_size": 32,
}
HUNYUAN = {
    **BASE,
    "model_type": "hunyuan_v1_moe",
    "num_experts": 8,
    "moe_topk": [2, 2, 2, 2],
    "moe_intermediate_size": [160] * 4,
    "num_shared_expert": [1] * 4,
}
DBRX: dict[str, Any] = {
    "model_type": "dbrx",
    "d_model": 64,
    "n_heads": 8,
    "n_layers": 4,
    "max_seq_len": 128,
    "vocab_size": 1000,
    "attn_config": {"kv_n_heads": 2, "rope_theta": 500000, "clip_qkv": 8},
    "ffn_config": {"ffn_hidden_size": 160, "moe_num_experts": 8, "moe_top_k": 2},
}


def spec_of(config: Any) -> ModelSpec:
    return parse_config(config, "config.json").spec


def experts_of(config: Any) -> Experts:
    experts = spec_of(config).moe
    assert experts is not None
    return experts


def dense_layers(config: Any) -> list[int]:
    kinds = [isinstance(layer.mlp, MlpSpec) for layer in spec_of(config).layers()]
    return [index for index, dense in enumerate(kinds) if dense]


def attentions(config: Any) -> list[AttentionSpec]:
    blocks = [layer.attention for layer in spec_of(config).layers()]
    return [block for block in blocks if isinstance(block, AttentionSpec)]


def problems_of(config: Any) -> list[tuple[str, str]]:
    with pytest.raises(InputError) as caught:
        parse_config(config, "config.json")
    return [(problem.key, problem.fix) for problem in caught.value.problems]


@pytest.mark.parametrize("config", [MIXTRAL, DBRX], ids=["mixtral", "dbrx"])
def test_experts_of_the_models_own_width_stand_in_every_layer(config: dict[str, Any]) -> None:
    assert experts_of(config) == Experts(
        num_experts=8, num_experts_per_tok=2, moe_intermediate_size=160
    )


def test_dbrx_has_layer_norms_without_biases_and_grouped_heads() -> None:
    spec = spec_of(DBRX)
    assert (spec.norm, spec.norm_bias, spec.num_key_value_heads) == ("layernorm", False, 2)


def test_the_spelling_of_experts_does_not_matter() -> None:
    named = {key: value for key, value in MIXTRAL.items() if key != "num_local_experts"}
    assert spec_of({**named, "num_experts": 8}) == spec_of(MIXTRAL)


@pytest.mark.parametrize(
    ("change", "dense"),
    [
        ({}, []),
        ({"decoder_sparse_step": 2}, [0, 2]),
        ({"mlp_only_layers": [3]}, [3]),
        ({"decoder_sparse_step": 2, "mlp_only_layers": [3]}, [0, 2, 3]),
        ({"num_experts": 0}, [0, 1, 2, 3]),
        ({"mlp_layer_types": ["dense", "sparse", "sparse", "sparse"]}, [0]),
    ],
)
def test_qwen_says_which_layers_are_dense(change: dict[str, Any], dense: list[int]) -> None:
    assert dense_layers({**QWEN3, **change}) == dense


def test_a_mixture_without_dense_layers_needs_no_dense_width() -> None:
    bare = {key: value for key, value in QWEN3.items() if key != "intermediate_size"}
    assert experts_of(bare) == experts_of(QWEN3)


def test_a_dense_layer_needs_the_dense_width() -> None:
    bare = {key: value for key, value in QWEN3.items() if key != "intermediate_size"}
    keys = [key for key, _ in problems_of({**bare, "mlp_only_layers": [1]})]
    assert keys == ["intermediate_size"]


def test_qwen3_slides_in_every_layer_when_it_is_told_to() -> None:
    flags = [{"use_sliding_window": flag, "sliding_window": 16} for flag in (False, True)]
    windows = [[block.window for block in attentions({**QWEN3, **flag})] for flag in flags]
    assert windows == [[None] * 4, [16] * 4]


def test_qwen2_has_a_gated_shared_expert_and_biases_it_can_turn_off() -> None:
    experts, plain = experts_of(QWEN2), spec_of({**QWEN2, "qkv_bias": False})
    assert (
        experts.shared_expert_intermediate_size,
        experts.shared_expert_gate,
        spec_of(QWEN2).attention_bias,
        plain.attention_bias,
    ) == (48, True, True, False)


def test_deepseek_v3_reads_groups_shared_experts_and_what_predicts_ahead() -> None:
    spec = spec_of(DEEPSEEK)
    assert (spec.moe, spec.num_nextn_predict_layers) == (
        Experts(
            num_experts=8,
            num_experts_per_tok=2,
            moe_intermediate_size=32,
            shared_expert_intermediate_size=64,
            router_bias=True,
            n_group=4,
            topk_group=2,
            dense_layers=(0,),
        ),
        1,
    )


def test_deepseek_skips_layers_off_the_frequency() -> None:
    assert dense_layers({**DEEPSEEK, "moe_layer_freq": 2}) == [0, 1, 3]


def test_latent_attention_has_its_own_head_width() -> None:
    config = {**DEEPSEEK, "head_dim": 4, "qk_head_dim": 12}
    attention = spec_of(config).layers()[0].attention
    assert isinstance(attention, MlaSpec)
    assert (attention.qk_head_dim, attention.v_head_dim, attention.q_lora_rank) == (12, 8, 24)


def test_null_is_no_query_rank_and_absence_is_not_known() -> None:
    null = spec_of({**DEEPSEEK, "q_lora_rank": None}).mla
    absent = {key: value for key, value in DEEPSEEK.items() if key != "q_lora_rank"}
    assert (null and null.q_lora_rank, [key for key, _ in problems_of(absent)]) == (
        None,
        ["q_lora_rank"],
    )


def test_deepseek_v2_reads_groups_only_where_the_router_does() -> None:
    v2 = {**DEEPSEEK, "model_type": "deepseek_v2", "num_nextn_predict_layers": 0}
    methods = ("greedy", "gready", "group_limited_greedy")
    counts = [experts_of({**v2, "topk_method": method}).n_group for method in methods]
    assert counts == [1, 1, 4]


def test_deepseek_vl2_can_turn_latent_attention_off() -> None:
    config = {
        **DEEPSEEK,
        "model_type": "deepseek_v2",
        "topk_method": "greedy",
        "num_nextn_predict_layers": None,
        "use_mla": False,
        "q_lora_rank": None,
        "kv_lora_rank": None,
        "qk_nope_head_dim": 0,
        "qk_rope_head_dim": 0,
        "v_head_dim": 0,
    }
    assert [block.head_dim for block in attentions(config)] == [8] * 4


def test_gpt_oss_alternates_windows_from_the_first_and_has_sinks_and_biases() -> None:
    blocks, experts = attentions(GPT_OSS), experts_of(GPT_OSS)
    assert (
        [block.window for block in blocks],
        {(block.sinks, block.qkv_bias, block.output_bias) for block in blocks},
        (experts.router_bias, experts.expert_bias),
    ) == ([128, None, 128, None], {(True, True, True)}, (True, True))


def test_llama4_chunks_rotary_layers_and_leaves_every_fourth_full() -> None:
    blocks = attentions(LLAMA4)
    assert [(block.chunk, block.rope, block.qk_norm) for block in blocks] == [
        (8192, True, QkNorm.NONPARAMETRIC)
    ] * 3 + [(None, False, QkNorm.NONE)]


@pytest.mark.parametrize(
    ("change", "dense"),
    [
        ({}, []),
        ({"interleave_moe_layer_step": 2}, [0, 2]),
        ({"moe_layers": [0]}, [1, 2, 3]),
        ({"moe_layers": []}, [0, 1, 2, 3]),
    ],
)
def test_llama4_interleaves_wider_dense_layers(change: dict[str, Any], dense: list[int]) -> None:
    config = {**LLAMA4, **change}
    widths = {
        layer.mlp.intermediate_size
        for layer in spec_of(config).layers()
        if isinstance(layer.mlp, MlpSpec)
    }
    assert (dense_layers(config), widths) == (dense, {320} if dense else set())


def test_llama4_has_a_shared_expert_as_wide_as_a_routed_one() -> None:
    experts = experts_of(LLAMA4)
    assert (experts.moe_intermediate_size, experts.shared_expert_intermediate_size) == (160, 160)


def test_llama4_without_a_chunk_size_is_refused() -> None:
    keys = [key for key, _ in problems_of({**LLAMA4, "attention_chunk_size": None})]
    assert keys == ["layer_types"]


def test_llama4_leaves_sizes_of_its_text_config_to_the_library() -> None:
    spec = spec_of({"model_type": "llama4", "text_config": {"model_type": "llama4_text"}})
    assert spec.parameters == 107_769_861_120


def test_glm_has_no_output_bias_and_norms_where_asked() -> None:
    blocks = attentions(GLM)
    assert {(block.qkv_bias, block.output_bias, block.qk_norm) for block in blocks} == {
        (True, False, QkNorm.PER_HEAD)
    }


def test_ernie_places_experts_from_a_layer_on() -> None:
    change = {"moe_layer_start_index": 1, "moe_layer_end_index": 2, "moe_layer_interval": 1}
    assert dense_layers({**ERNIE, **change}) == [0, 3]


def test_hunyuan_lists_the_same_experts_for_every_layer() -> None:
    assert experts_of(HUNYUAN) == Experts(
        num_experts=8,
        num_experts_per_tok=2,
        moe_intermediate_size=160,
        shared_expert_intermediate_size=160,
    )


def test_experts_that_differ_from_layer_to_layer_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="num_experts: must be the same in every layer"):
        spec_of({**HUNYUAN, "num_experts": [8, 8, 4, 4]})


@pytest.mark.parametrize(
    ("config", "key", "fix"),
    [
        ({**MIXTRAL, "num_experts_per_tok": 9}, "num_experts_per_tok", "use 8 or fewer"),
        ({**GPT_OSS, "experts_per_token": 4}, "experts_per_token", "remove one of"),
        ({**MIXTRAL, "num_experts": 4}, "num_local_experts", "remove one of"),
        ({**DEEPSEEK, "n_group": 3}, "n_group", "use 2"),
        ({**DEEPSEEK, "topk_group": 5}, "topk_group", "use 1 to 4"),
        ({**DEEPSEEK, "num_key_value_heads": 2}, "num_key_value_heads", "use num_key"),
        ({**DEEPSEEK, "topk_method": "x"}, "topk_method", "use one of noaux_tc"),
        ({**DEEPSEEK, "mlp_layer_types": ["dense"]}, "mlp_layer_types", "use num_hidden_layers 1"),
        ({**QWEN3, "decoder_sparse_step": 0}, "decoder_sparse_step", "write the value"),
        ({**QWEN3, "num_experts": "many"}, "num_experts", "write the value"),
        ({**QWEN3, "moe_intermediate_size": None}, "moe_intermediate_size", "write the value"),
        ({**DBRX, "ffn_config": None}, "ffn_config", "write the value"),
        (
            {**DBRX, "ffn_config": {"ffn_hidden_size": 160, "moe_num_experts": 8}},
            "ffn_config.moe_top_k",
            "write the value",
        ),
        ({**QWEN3, "model_type": "qwen3"}, "moe_intermediate_size", "remove the key"),
    ],
)
def test_a_wrong_value_is_reported_at_the_files_own_key(
    config: dict[str, Any], key: str, fix: str
) -> None:
    found = problems_of(config)
    assert any(name == key and text.startswith(fix) for name, text in found), found


@pytest.mark.parametrize(
    "change",
    [
        {"expert_layer_period": 2},
        {"moe_layer_num_skipped": 1},
        {"num_zero_experts": 2},
        {"kv_lora_rank": 512},
        {"num_nextn_predict_layers": 1},
        {"moe_latent_size": 16},
    ],
)
def test_keys_that_change_a_mixture_and_are_not_understood_are_refused_by_name(
    change: dict[str, Any],
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse_config({**MIXTRAL, **change}, "config.json")
    assert [problem.key for problem in caught.value.problems] == list(change)


def test_minimax_with_linear_attention_is_refused_by_name() -> None:
    config = {**MIXTRAL, "model_type": "minimax_m2", "attn_type_list": [0, 1, 0, 1]}
    with pytest.raises(UnsupportedError, match="attn_type_list: linear attention is not modelled"):
        spec_of(config)


def test_deepseek_vl2_balances_scores_without_a_loss() -> None:
    experts = experts_of({**DEEPSEEK, "model_type": "deepseek_v2", "num_nextn_predict_layers": 0})
    assert (experts.router_bias, experts.n_group) == (True, 4)


@pytest.mark.parametrize(
    ("model_type", "named"),
    [("llama", "MixtralForCausalLM"), ("mixtral", "LlamaForCausalLM")],
)
def test_a_class_and_a_model_type_must_agree_on_experts(model_type: str, named: str) -> None:
    config = {**MIXTRAL, "model_type": model_type, "architectures": [named]}
    assert [key for key, _ in problems_of(config)] == ["architectures"]


def test_a_text_config_is_known_by_its_class_where_it_has_no_type() -> None:
    text = {key: value for key, value in DEEPSEEK.items() if key != "model_type"}
    text["architectures"] = ["DeepseekV3ForCausalLM"]
    assert spec_of({"model_type": "kimi_vl", "text_config": text}).moe == experts_of(DEEPSEEK)


def test_what_a_router_computes_leaves_no_note() -> None:
    config = {**DEEPSEEK, "scoring_func": "sigmoid", "routed_scaling_factor": 2.5, "seq_aux": True}
    notes = "; ".join(parse_config(config, "config.json").notes)
    assert not any(word in notes for word in ("rout", "scoring", "seq_aux"))


def test_the_mtp_module_that_the_library_leaves_out_is_noted() -> None:
    model = parse_config({**ERNIE, "num_nextn_predict_layers": 1}, "config.json")
    assert (
        model.spec.mtp_parameters,
        "num_nextn_predict_layers = 1 is left out, as the library does" in model.notes,
    ) == (0, True)


def test_moe_layers_hold_experts_as_specs() -> None:
    kinds = {type(layer.mlp) for layer in spec_of(MIXTRAL).layers()}
    assert kinds == {MoeSpec}
