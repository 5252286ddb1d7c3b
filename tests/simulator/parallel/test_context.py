"""Attention under context parallelism: bytes, FLOP and memory of each exchange, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.parallel.context import core_backward, core_forward
from simulator.parallel.context_gather import gathered_shapes
from simulator.parallel.core import Core
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ContextExchange, ParallelLayout
from simulator.parallel.shard import Shard, make_shard
from simulator.parallel.work import Block, CommWork, Piece
from simulator.workload.operator import FlashAttention
from tests.fakes import fake_stack, tiny_job

B, S, CP = 2, 64, 4
CORE = Core(heads=8, kv_heads=4, head_dim=16, v_head_dim=16)
TOKENS = B * S // CP
Q, KV = 8 * 16, 4 * 16
ELEMENT = 2
EXCHANGES = tuple(ContextExchange)
STACK = fake_stack()


def shard_of(exchange: ContextExchange, cp: int = CP, **job: object) -> Shard:
    inner = 2 if exchange is ContextExchange.HIERARCHICAL else None
    layout = ParallelLayout(cp=cp, cp_comm_type=exchange, cp_inner=inner, micro_batch_size=B)
    return make_shard(layout, tiny_job(seq_length=S, **job), STACK, 2)


def whole(**job: object) -> Shard:
    return make_shard(ParallelLayout(micro_batch_size=B), tiny_job(seq_length=S, **job), STACK, 2)


def traffic(pieces: list[Piece]) -> list[tuple[Collective, float, int]]:
    return [
        (piece.collective, piece.payload, piece.count)
        for piece in pieces
        if isinstance(piece, CommWork)
    ]


def kernels(pieces: list[Piece]) -> list[FlashAttention]:
    return [piece for piece in pieces if isinstance(piece, FlashAttention)]


def flops(pieces: list[Piece]) -> float:
    return sum(kernel.flops for kernel in kernels(pieces))


KEYS = ELEMENT * TOKENS * KV
"""Bytes of a rank's keys; its values have as many."""
QUERIES = ELEMENT * TOKENS * Q

FORWARD = {
    ContextExchange.RING: [(Collective.SEND_RECV, 2 * KEYS, CP - 1)],
    ContextExchange.ALL_GATHER: [(Collective.ALL_GATHER, CP * KEYS, 1)] * 2,
    ContextExchange.ULYSSES: [
        (Collective.ALL_TO_ALL, QUERIES, 1),
        (Collective.ALL_TO_ALL, KEYS, 1),
        (Collective.ALL_TO_ALL, KEYS, 1),
        (Collective.ALL_TO_ALL, QUERIES, 1),
    ],
    # Two groups of two: inside each an all-to-all, between them one hop.
    ContextExchange.HIERARCHICAL: [
        (Collective.ALL_TO_ALL, QUERIES, 1),
        (Collective.ALL_TO_ALL, KEYS, 1),
        (Collective.ALL_TO_ALL, KEYS, 1),
        (Collective.SEND_RECV, 2 * KEYS, 1),
        (Collective.ALL_TO_ALL, QUERIES, 1),
    ],
}
BACKWARD = {
    ContextExchange.RING: [(Collective.SEND_RECV, 4 * KEYS, CP - 1)],
    ContextExchange.ALL_GATHER: [
        *[(Collective.ALL_GATHER, CP * KEYS, 1)] * 2,
        *[(Collective.REDUCE_SCATTER, CP * KEYS, 1)] * 2,
    ],
    ContextExchange.ULYSSES: [
        (Collective.ALL_TO_ALL, QUERIES, 1),
        (Collective.ALL_TO_ALL, QUERIES, 1),
        (Collective.ALL_TO_ALL, QUERIES, 1),
        (Collective.ALL_TO_ALL, KEYS, 1),
        (Collective.ALL_TO_ALL, KEYS, 1),
    ],
    ContextExchange.HIERARCHICAL: [
        (Collective.ALL_TO_ALL, QUERIES, 1),
        (Collective.ALL_TO_ALL, QUERIES, 1),
        (Collective.SEND_RECV, 4 * KEYS, 1),
        (Collective.ALL_TO_ALL, QUERIES, 1),
        (Collective.ALL_TO_ALL, KEYS, 1),
        (Collective.ALL_TO_ALL, KEYS, 1),
    ],
}


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_what_travels_forward(exchange: ContextExchange) -> None:
    assert traffic(core_forward(CORE, shard_of(exchange))) == FORWARD[exchange]


def test_repeated_heads_travel_once_for_each_query_head() -> None:
    stack = fake_stack(kernels={"repeats_kv": True})
    layout = ParallelLayout(cp=CP, cp_comm_type=ContextExchange.ALL_GATHER, micro_batch_size=B)
    shard = make_shard(layout, tiny_job(seq_length=S), stack, 2)
    assert traffic(core_forward(CORE, shard)) == [(Collective.ALL_GATHER, CP * QUERIES, 1)] * 2


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_what_travels_backward(exchange: ContextExchange) -> None:
    assert traffic(core_backward(CORE, shard_of(exchange))) == BACKWARD[exchange]


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_what_is_kept_does_not_depend_on_the_exchange(exchange: ContextExchange) -> None:
    # Queries, keys and values, and four bytes a token and head.
    saved = Block(name="core", pieces=tuple(core_forward(CORE, shard_of(exchange)))).saved
    assert saved == QUERIES + 2 * KEYS + 4 * TOKENS * 8


@pytest.mark.parametrize(
    ("exchange", "buffer"),
    [
        # Keys, values and both gradients, one set read and one received.
        (ContextExchange.RING, 2 * 4 * KEYS),
        # All keys and values, and all their gradients.
        (ContextExchange.ALL_GATHER, CP * 4 * KEYS),
        # The output and its gradient, or three gradients, whichever are more.
        (ContextExchange.ULYSSES, 2 * QUERIES),
        (ContextExchange.HIERARCHICAL, 2 * 4 * KEYS),
    ],
)
def test_buffers_of_the_backward_pass(exchange: ContextExchange, buffer: float) -> None:
    backward = Block(name="core", pieces=tuple(core_backward(CORE, shard_of(exchange))))
    assert backward.buffer == buffer


def test_the_ring_computes_a_diagonal_and_half_blocks() -> None:
    seq = S // CP
    scores = [
        (k.name, k.shape.seq_q, k.shape.mean_keys, k.count)
        for k in kernels(core_forward(CORE, shard_of(ContextExchange.RING)))
    ]
    assert scores == [
        ("attention.core", seq, (seq + 1) / 2, 1),
        ("attention.core.peer", seq // 2, seq, CP - 2),
        ("attention.core.last", seq // 2, seq, 1),
    ]


def test_the_last_block_of_the_ring_hides_no_hop() -> None:
    pieces = core_forward(CORE, shard_of(ContextExchange.RING))
    (hop,) = [piece for piece in pieces if isinstance(piece, CommWork)]
    assert hop.hidden_by == ("attention.core", "attention.core.peer")


def test_ulysses_runs_a_share_of_the_heads_over_the_whole_sequence() -> None:
    (kernel,) = kernels(core_forward(CORE, shard_of(ContextExchange.ULYSSES)))
    shape = kernel.shape
    assert (shape.seq_q, shape.seq_k, shape.heads, shape.kv_heads) == (S, S, 2, 1)


def test_the_hierarchy_runs_a_ring_of_longer_pieces_of_fewer_heads() -> None:
    first, _ = kernels(core_forward(CORE, shard_of(ContextExchange.HIERARCHICAL)))
    shape = first.shape
    assert (shape.seq_q, shape.heads, shape.kv_heads) == (S // 2, 4, 2)


def test_inner_groups_stay_in_a_domain_and_outer_ones_cross() -> None:
    pieces = core_forward(CORE, shard_of(ContextExchange.HIERARCHICAL))
    domains = {p.collective: p.group.domains for p in pieces if isinstance(p, CommWork)}
    assert domains == {Collective.ALL_TO_ALL: 1, Collective.SEND_RECV: 2}


@given(exchange=st.sampled_from(EXCHANGES), cp=st.sampled_from((4,)))
def test_ranks_share_the_flops_of_the_whole(exchange: ContextExchange, cp: int) -> None:
    shard = shard_of(exchange, cp)
    for run in (core_forward, core_backward):
        assert flops(run(CORE, shard)) * cp == pytest.approx(flops(run(CORE, whole())))


@given(
    exchange=st.sampled_from((ContextExchange.RING, ContextExchange.ULYSSES)),
    document=st.sampled_from((8, 16, 24, 32, 48, 64)),
)
def test_ranks_share_the_flops_of_packed_documents(
    exchange: ContextExchange, document: int
) -> None:
    shard = shard_of(exchange, document_length=document)
    alone = flops(core_forward(CORE, whole(document_length=document)))
    assert flops(core_forward(CORE, shard)) * CP == pytest.approx(alone)


@given(window=st.integers(1, S), cp=st.sampled_from((2, 4, 8)))
def test_gathered_pieces_of_all_ranks_see_what_a_window_leaves(window: int, cp: int) -> None:
    core = replace(CORE, window=window)
    shard = shard_of(ContextExchange.ALL_GATHER, cp)
    each = [sum(s.flops for s in gathered_shapes(core, shard, rank)) for rank in range(cp)]
    assert sum(each) == pytest.approx(flops(core_forward(core, whole())))
    priced = flops(core_forward(core, shard))
    assert priced == pytest.approx(max(each))


def test_a_windowed_piece_reads_its_window_of_the_gathered_keys() -> None:
    core = replace(CORE, window=5)
    early, late = gathered_shapes(core, shard_of(ContextExchange.ALL_GATHER), 0)
    # Pieces of 8 tokens: the first has only its own, the last four keys before them.
    assert (early.seq_q, early.seq_k, late.seq_q, late.seq_k) == (8, 8, 8, 12)
    assert late.mean_keys == 5


def test_documents_of_a_sequence_are_attended_apart() -> None:
    (kernel,) = kernels(core_forward(CORE, whole(document_length=16)))
    assert kernel.shape.mean_keys == (16 + 1) / 2


def test_chunks_are_documents_inside_documents() -> None:
    (kernel,) = kernels(core_forward(replace(CORE, chunk=16), whole(document_length=24)))
    # Documents of 24, 24 and 16 in chunks of 16 and 8, 16 and 8, and 16.
    seen = 3 * 16 * 17 / 2 + 2 * 8 * 9 / 2
    assert kernel.shape.mean_keys == pytest.approx(seen / S)


def test_mfu_counts_each_document_as_a_sequence() -> None:
    (packed,) = kernels(core_forward(CORE, whole(document_length=16)))
    (one,) = kernels(core_forward(CORE, whole()))
    assert packed.model_flops == one.model_flops / 4


@pytest.mark.parametrize("length", [1 << 20, 10**7])
def test_a_million_tokens_are_counted_exactly(length: int) -> None:
    layout = ParallelLayout()
    shard = make_shard(layout, tiny_job(seq_length=length), STACK, 8)
    (kernel,) = kernels(core_forward(CORE, shard))
    assert kernel.flops == 4.0 * Q * length * (length + 1) / 2


@given(st.integers(10, 19))
def test_attention_is_quadratic_in_the_sequence(power: int) -> None:
    once, twice = (
        flops(core_forward(CORE, make_shard(ParallelLayout(), tiny_job(seq_length=n), STACK, 8)))
        for n in (1 << power, 2 << power)
    )
    assert twice / once == pytest.approx(4, rel=2 / (1 << power))
