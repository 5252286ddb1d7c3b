"""Latent attention of DeepSeek-V3 and of a tiny model against hand arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.parallel.chunks import layer_parameters
from simulator.parallel.groups import Collective
from simulator.parallel.work import CommWork
from simulator.workload.load import load_model
from simulator.workload.operator import FlashAttention
from tests.simulator.parallel.mixtures import (
    LATENT,
    comms,
    gemm,
    named,
    passes_of,
    shard_of,
    tiny_latent,
)

DEEPSEEK = load_model("deepseek-v3").spec.layers()[0]
TINY = tiny_latent().layers()[0]
SHORT = tiny_latent(mla=LATENT.model_copy(update={"q_lora_rank": None})).layers()[0]
T = 64


def test_products_of_deepseek_at_tp2() -> None:
    # 2 x 32 tokens, 32 a rank before the latents are gathered; 64 heads a rank.
    shard = shard_of(tp=2, sequence_parallel=True)
    forward = passes_of(DEEPSEEK, shard).forward
    names = ("q_down", "kv_down", "q_up", "kv_up", "proj")
    assert [gemm(forward, f"attention.{name}") for name in names] == [
        (32, 1536, 7168, 1),
        (32, 512 + 64, 7168, 1),
        (64, 64 * (128 + 64), 1536, 1),
        (64, 64 * (128 + 128), 512, 1),
        (64, 7168, 64 * 128, 1),
    ]


def test_every_head_has_a_key_of_192_and_a_value_of_128_channels() -> None:
    core = named(passes_of(DEEPSEEK, shard_of(tp=2, sequence_parallel=True)).forward)[
        "attention.core"
    ]
    assert isinstance(core, FlashAttention)
    shape = core.shape
    widths = (shape.heads, shape.kv_heads, shape.head_dim, shape.v_head_dim)
    assert widths == (64, 64, 192, 128)


def test_sequence_parallelism_gathers_latents_and_not_hidden_states() -> None:
    forward = passes_of(TINY, shard_of(tp=2, dp=4, ep=4, etp=1, sequence_parallel=True)).forward
    rows = {
        name: (piece.collective, piece.payload / (2 * T))
        for name, piece in comms(forward, "attention.").items()
    }
    assert rows == {
        "attention.q_up.gather": (Collective.ALL_GATHER, 32.0),
        "attention.kv_up.gather": (Collective.ALL_GATHER, 16.0),
        "attention.rope.gather": (Collective.ALL_GATHER, 8.0),
        "attention.proj.reduce": (Collective.REDUCE_SCATTER, 64.0),
    }


def test_without_it_their_gradients_are_reduced() -> None:
    dense = tiny_latent(None).layers()[0]
    backward = passes_of(dense, shard_of(tp=2)).backward
    rows = {
        name: (piece.collective, piece.payload / (2 * T))
        for name, piece in comms(backward, "attention.").items()
    }
    assert rows == {
        "attention.rope.grad_input": (Collective.ALL_REDUCE, 8.0),
        "attention.kv_up.grad_input": (Collective.ALL_REDUCE, 16.0),
        "attention.q_up.grad_input": (Collective.ALL_REDUCE, 32.0),
    }


def test_it_keeps_each_input_once() -> None:
    kept = {
        piece.name: piece.saved / (2 * T)
        for piece in passes_of(TINY, shard_of()).forward.pieces
        if not isinstance(piece, CommWork) and piece.name.startswith("attention.") and piece.saved
    }
    # Queries and keys of 4 x 24, values of 4 x 16, and an fp32 number a head.
    assert kept == {
        "attention.norm": 64.0,
        "attention.q_down": 64.0,
        "attention.q_norm": 32.0,
        "attention.kv_norm": 16.0,
        "attention.q_up": 32.0,
        "attention.kv_up": 16.0,
        "attention.core": 2 * 96.0 + 64.0 + 4 * 4 / 2,
        "attention.proj": 64.0,
    }


def test_queries_may_come_from_the_hidden_state() -> None:
    forward = passes_of(SHORT, shard_of()).forward
    assert gemm(forward, "attention.q_up") == (T, 96, 64, 1)
    assert not {"attention.q_down", "attention.q_norm"} & set(named(forward))


def test_model_flops_are_two_a_weight_and_token_and_the_unmasked_core() -> None:
    forward = passes_of(tiny_latent(None).layers()[0], shard_of()).forward
    down, up = 64 * (32 + 24), 32 * 96 + 16 * 4 * 32
    weights = down + up + 64 * 64
    mlp = 3 * 64 * 256
    # Q K' of 24 channels and P V of 16, 4 heads, 2 sequences of 32.
    core = 2 * (24 + 16) * 4 * 2 * 32 * 32
    assert forward.model_flops == 2 * T * (weights + mlp) + core


def test_down_projections_are_whole_on_every_rank() -> None:
    tp1, tp2 = (layer_parameters(TINY, tp) for tp in (1, 2))
    sharded = 32 * 96 + 16 * 128 + 64 * 64
    assert tp1 - tp2 == sharded / 2


@given(tp=st.sampled_from((1, 2, 4)), sequence_parallel=st.booleans())
def test_backward_does_twice_the_products_of_forward(tp: int, sequence_parallel: bool) -> None:
    dense = tiny_latent(None).layers()[0]
    passes = passes_of(dense, shard_of(tp=tp, sequence_parallel=sequence_parallel))
    flops = [
        sum(getattr(p, "flops", 0.0) for p in block.pieces if not _is_core(p.name))
        for block in (passes.forward, passes.backward)
    ]
    assert flops[1] == pytest.approx(2 * flops[0])


def _is_core(name: str) -> bool:
    return name.startswith("attention.core")
