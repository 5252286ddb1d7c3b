"""A part as DTensors on a mesh of one rank computes what the plain shard computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from simulator.workload.load import load_model

torch = pytest.importorskip("torch")
parallel = pytest.importorskip("torch.distributed.tensor.parallel")

from calibrate.measure_model import Embedding, Head, build_layer, loss_of  # noqa: E402
from calibrate.measure_tensor_parallel import (  # noqa: E402
    one_rank_mesh,
    shard_embedding,
    shard_head,
    shard_layer,
)

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

    shard_layer(module, one_rank_mesh(CPU))
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

    shard_embedding(module, one_rank_mesh(CPU))

    torch.testing.assert_close(module(tokens), plain)


def test_the_loss_of_cut_logits_is_that_of_plain_ones() -> None:
    spec = load_model("gpt2").spec.model_copy(update={"vocab_size": 100})
    module, given, targets = Head(spec), torch.randn(2, 8, HIDDEN), torch.randint(100, (2, 8))
    plain = loss_of(module(given), targets)

    shard_head(module, one_rank_mesh(CPU))
    with parallel.loss_parallel():
        cut: Any = loss_of(module(given), targets)

    torch.testing.assert_close(cut.full_tensor(), plain)
