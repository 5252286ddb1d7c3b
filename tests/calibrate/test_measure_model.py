from __future__ import annotations

from dataclasses import replace

import pytest

from simulator.errors import UnsupportedError
from simulator.workload.layer import AttentionSpec, LayerSpec, MlpSpec, Norm, QkNorm
from simulator.workload.load import load_model
from simulator.workload.model import ModelSpec, Position

torch = pytest.importorskip("torch")

from calibrate.measure_blocks import build_layer  # noqa: E402
from calibrate.measure_model import TorchModel, loss_of  # noqa: E402

DENSE = (
    "gemma2-2b",
    "gemma3-1b",
    "gpt2",
    "llama3.2-1b",
    "mistral-7b-v0.1",
    "mpt-125m",
    "nemotron4-15b",
    "qwen2.5-0.5b",
    "qwen3-0.6b",
)


def _tiny(**changes: object) -> ModelSpec:
    return ModelSpec.model_validate(
        {
            "name": "tiny",
            "num_hidden_layers": 3,
            "hidden_size": 32,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 8,
            "intermediate_size": 64,
            "vocab_size": 101,
            "tie_word_embeddings": False,
            "gated_mlp": True,
            "activation": "silu",
            "norm": Norm.RMSNORM,
            "position": Position.ROPE,
            "max_position_embeddings": 64,
            **changes,
        }
    )


@pytest.mark.parametrize("name", DENSE)
def test_a_shipped_dense_model_has_exactly_its_parameters(name: str) -> None:
    spec = load_model(name).spec
    with torch.device("meta"):
        model = TorchModel(spec)
    assert sum(p.numel() for p in model.parameters()) == spec.parameters


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"parallel_block": True, "norms_per_layer": 1},
        {"norms_per_layer": 4, "qk_norm": QkNorm.PER_HEAD},
        {"gated_mlp": False, "activation": "gelu", "norm": Norm.LAYERNORM, "norm_bias": True},
        {"position": Position.LEARNED, "embedding_norm": True, "qk_norm": QkNorm.FULL_WIDTH},
    ],
    ids=lambda changes: "-".join(changes) or "plain",
)
def test_no_token_sees_a_later_one(changes: dict[str, object]) -> None:
    model = TorchModel(_tiny(**changes)).double()
    tokens = torch.randint(101, (1, 16))
    later = tokens.clone()
    later[0, 10:] = (later[0, 10:] + 1) % 101
    with torch.no_grad():
        before, after = model(tokens)[0], model(later)[0]
    torch.testing.assert_close(before[:10], after[:10])
    assert not torch.allclose(before[10:], after[10:])


def test_stages_one_after_another_are_the_whole_model() -> None:
    spec = _tiny()
    whole, first, last = TorchModel(spec), TorchModel(spec, stop=1), TorchModel(spec, start=1)
    states = whole.state_dict()
    first.load_state_dict({k: v for k, v in states.items() if k in first.state_dict()})
    last.load_state_dict(
        {key: states[_shifted(key, 1)] for key in last.state_dict()},
    )
    tokens = torch.randint(101, (2, 8))
    torch.testing.assert_close(last(first(tokens)), whole(tokens))


def _shifted(key: str, by: int) -> str:
    """Return the name in the whole model of a parameter of a stage that begins at layer `by`."""
    head, *rest = key.split(".")
    return ".".join([head, str(int(rest[0]) + by), *rest[1:]]) if head == "layers" else key


def test_a_tied_head_is_trained_with_the_embedding() -> None:
    model = TorchModel(_tiny(tie_word_embeddings=True), 1)
    tokens = torch.randint(101, (2, 8))
    loss_of(model(tokens), tokens).backward()
    assert model.head.output.weight is model.tok.tokens.weight
    assert "head.output.weight" not in dict(model.named_parameters())


@pytest.mark.parametrize("position", [Position.ROPE, Position.LEARNED])
def test_shards_of_a_block_add_up_to_it(position: Position) -> None:
    spec = _tiny(position=position, num_key_value_heads=4).layers()[0]
    whole = build_layer(spec).double()
    shards = [build_layer(spec, 2).double() for _ in range(2)]
    for index, shard in enumerate(shards):
        _take_part(whole, shard, index)
    x = torch.randn(2, 8, 32, dtype=torch.float64)
    torch.testing.assert_close(sum(shard.attn(x) for shard in shards), whole.attn(x))
    torch.testing.assert_close(sum(shard.mlp(x) for shard in shards), whole.mlp(x))


def _take_part(whole: torch.nn.Module, shard: torch.nn.Module, index: int) -> None:
    """Copy one half: rows of what reads the hidden state, columns of what writes to it."""
    parts = dict(shard.named_parameters())
    for name, parameter in whole.named_parameters():
        dim = 1 if name in ("attn.o.weight", "mlp.down.weight") else 0
        own = parts[name]
        part = parameter if own.shape == parameter.shape else parameter.chunk(2, dim)[index]
        own.data.copy_(part)


def test_rotary_scores_depend_on_distance_alone() -> None:
    from calibrate.measure_blocks import Attention, _rotate

    attention = AttentionSpec(
        hidden_size=16, num_attention_heads=1, num_key_value_heads=1, head_dim=16
    )
    query, key = torch.randn(1, 1, 1, 16), torch.randn(1, 1, 1, 16)
    table = Attention(attention)._rope_table(query.expand(1, 1, 12, 16))
    turned = [_rotate(each.expand(1, 1, 12, 16), table)[0, 0] for each in (query, key)]
    scores = turned[0] @ turned[1].T
    for distance in range(-11, 12):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=0, atol=1e-5)
    assert scores[0].std() > 1e-2


def test_products_of_a_layer_are_two_flop_a_parameter_and_token() -> None:
    counting = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode(display=False)
    mlp = MlpSpec(hidden_size=32, intermediate_size=96, gated=True, activation="silu")
    layer = build_layer(
        LayerSpec(hidden_size=32, attention=None, mlp=mlp, norm=Norm.RMSNORM, norms=1)
    )
    with counting as counter:
        layer(torch.randn(2, 5, 32))
    assert counter.get_total_flops() == 2 * 10 * mlp.sharded_parameters


def test_a_window_below_the_sequence_is_refused_where_it_would_be_ignored() -> None:
    spec = _tiny().layers()[0]
    assert isinstance(spec.attention, AttentionSpec)
    layer = build_layer(replace(spec, attention=replace(spec.attention, window=4)))
    layer(torch.randn(1, 4, 32))
    with pytest.raises(UnsupportedError, match="over 4 keys cannot be measured at 5 tokens"):
        layer(torch.randn(1, 5, 32))
