from __future__ import annotations

import pytest

from calibrate.model_shards import check_layer, check_model, check_reach, local_layer
from simulator.errors import UnsupportedError
from simulator.workload.layer import AttentionSpec, LayerSpec, MlpSpec, Norm
from simulator.workload.load import load_model


def _layer(name: str) -> LayerSpec:
    return load_model(name).spec.layers()[0]


def test_a_shard_has_its_part_of_what_tensor_parallelism_divides_and_all_of_the_rest() -> None:
    whole = _layer("gpt2")
    shard = local_layer(whole, 4)
    assert shard.sharded_parameters * 4 == whole.sharded_parameters
    assert shard.replicated_parameters == whole.replicated_parameters


def test_fewer_key_heads_than_ranks_are_repeated() -> None:
    attention = local_layer(_layer("llama3-70b"), 16).attention
    assert isinstance(attention, AttentionSpec)
    assert (attention.num_attention_heads, attention.num_key_value_heads) == (4, 1)


def test_heads_that_do_not_divide_are_refused_with_the_nearest_legal_size() -> None:
    with pytest.raises(UnsupportedError, match="tp 5 must divide num_attention_heads 12") as caught:
        local_layer(_layer("gpt2"), 5)
    assert caught.value.problems[0].fix == "use tp = 4"


@pytest.mark.parametrize(
    ("name", "words"),
    [("mixtral-8x7b", "mixture of experts"), ("deepseek-v2-lite", "latent attention")],
)
def test_parts_that_are_not_built_are_refused_by_name(name: str, words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        check_layer(_layer(name), ("silu",))


def test_all_reasons_come_at_once() -> None:
    attention = AttentionSpec(
        hidden_size=8, num_attention_heads=2, num_key_value_heads=2, head_dim=4, sinks=True
    )
    mlp = MlpSpec(hidden_size=8, intermediate_size=8, gated=False, activation="tanh")
    layer = LayerSpec(hidden_size=8, attention=attention, mlp=mlp, norm=Norm.RMSNORM, norms=3)
    with pytest.raises(UnsupportedError) as caught:
        check_layer(layer, ("gelu",))
    keys = [problem.key for problem in caught.value.problems]
    assert keys == ["attention_sinks", "activation", "norms_per_layer"]


def test_alibi_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a bias on every attention score"):
        check_model(load_model("bloom-176b").spec)


def test_a_window_may_be_as_long_as_the_sequence_and_no_shorter() -> None:
    attention = _layer("mistral-7b-v0.1").attention
    assert isinstance(attention, AttentionSpec)
    check_reach(attention, 4096)
    with pytest.raises(UnsupportedError, match="4096 keys cannot be measured at 4097 tokens"):
        check_reach(attention, 4097)
