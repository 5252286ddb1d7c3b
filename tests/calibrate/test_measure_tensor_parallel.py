"""A part as DTensors on a lone mesh: what one of several ranks does, and one rank's results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from simulator.errors import UnsupportedError
from simulator.workload.attention_blocks import AttentionSpec
from simulator.workload.load import load_model
from tests.calibrate.gloo_ranks import on_ranks

torch = pytest.importorskip("torch")
parallel = pytest.importorskip("torch.distributed.tensor.parallel")
debug = pytest.importorskip("torch.distributed.tensor.debug")

from calibrate.measure_context import Context  # noqa: E402
from calibrate.measure_model import Embedding, Head, build_layer, loss_of  # noqa: E402
from calibrate.measure_tensor_parallel import (  # noqa: E402
    lone_mesh,
    shard_embedding,
    shard_head,
    shard_layer,
)
from calibrate.model_shards import whole_layer  # noqa: E402

CPU = torch.device("cpu")
HIDDEN = 768
"""Of GPT-2."""


@pytest.fixture(autouse=True)
def _no_group_is_left() -> Iterator[None]:
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def test_a_layer_and_its_gradients_are_those_of_the_plain_shard() -> None:
    layer, *_ = load_model("gpt2").spec.layers()
    module, given = build_layer(layer, 4), torch.randn(2, 8, HIDDEN)
    plain = module(given)
    (plain_gradient,) = torch.autograd.grad(plain.sum(), [weight_of(module)])

    shard_layer(module, lone_mesh(CPU, 1))
    cut = module(given)
    (gradient,) = torch.autograd.grad(cut.sum(), [weight_of(module)])

    torch.testing.assert_close(cut, plain)
    torch.testing.assert_close(gradient.full_tensor(), plain_gradient)


def weight_of(layer: Any) -> Any:
    return layer.attn.q.weight


def test_an_embedding_is_that_of_the_plain_table() -> None:
    spec = load_model("gpt2").spec.model_copy(update={"vocab_size": 100})
    module, tokens = Embedding(spec), torch.randint(100, (2, 8))
    plain = module(tokens)

    shard_embedding(module, lone_mesh(CPU, 1))

    torch.testing.assert_close(module(tokens), plain)


def test_the_loss_of_cut_logits_is_that_of_plain_ones() -> None:
    spec = load_model("gpt2").spec.model_copy(update={"vocab_size": 100})
    module, given, targets = Head(spec), torch.randn(2, 8, HIDDEN), torch.randint(100, (2, 8))
    plain = loss_of(module(given), targets)

    shard_head(module, lone_mesh(CPU, 1))
    with parallel.loss_parallel():
        cut: Any = loss_of(module(given), targets)

    torch.testing.assert_close(cut.full_tensor(), plain)


@pytest.mark.parametrize(("tp", "collectives"), [(1, 0), (2, 4)])
def test_a_lone_rank_hands_over_all_collectives_of_a_layer(tp: int, collectives: int) -> None:
    """One a block and direction: of attention and of the MLP, forward and backward."""
    layer, *_ = load_model("gpt2").spec.layers()
    module, given = build_layer(layer), torch.randn(2, 8, HIDDEN, requires_grad=True)
    shard_layer(module, lone_mesh(CPU, tp))

    with debug.CommDebugMode() as counted:
        torch.autograd.backward(module(given).sum())

    assert counted.get_total_counts() == collectives


def test_a_lone_rank_holds_its_share_of_the_weights() -> None:
    layer, *_ = load_model("gpt2").spec.layers()
    module = build_layer(layer)
    shard_layer(module, lone_mesh(CPU, 4))

    assert weight_of(module).to_local().shape == (HIDDEN // 4, HIDDEN)


def test_key_heads_are_repeated_where_there_are_fewer_than_ranks() -> None:
    """Llama 3 8B has 32 heads of 128 and 8 of keys: each of 16 ranks holds 2 and 1."""
    layer, *_ = load_model("llama3-8b").spec.layers()
    attention = whole_layer(layer, 16).attention
    assert isinstance(attention, AttentionSpec)
    assert attention.num_key_value_heads == 16
    assert whole_layer(layer, 4) == layer


def share_held(context: Context) -> tuple[int, list[int], int]:
    layer, *_ = load_model("gpt2").spec.layers()
    module, mesh = build_layer(layer), lone_mesh(context.device, 2)
    shard_layer(module, mesh)
    return mesh.size(), mesh.mesh.tolist(), len(weight_of(module).to_local())


def test_ranks_that_measure_at_once_are_lone_in_groups_of_neighbours(tmp_path: Path) -> None:
    half = HIDDEN // 2
    held = on_ranks(2, share_held, tmp_path)
    assert held == [(2, [0, 1], half), (2, [0, 1], half)]


def test_ranks_that_do_not_come_in_groups_are_refused_with_what_helps() -> None:
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    with pytest.raises(UnsupportedError, match="do not divide into groups of 2"):
        lone_mesh(CPU, 2)
