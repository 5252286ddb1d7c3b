"""What each way of exchanging keys does not offer is refused, with what to use instead."""

from __future__ import annotations

import pytest

from simulator.parallel.checks import Reason, violations
from simulator.parallel.layout import ContextExchange, ParallelLayout
from simulator.workload.model import ModelSpec
from tests.fakes import fake_stack, tiny_job, tiny_model

RING, GATHER = ContextExchange.RING, ContextExchange.ALL_GATHER
ULYSSES, BOTH = ContextExchange.ULYSSES, ContextExchange.HIERARCHICAL
WINDOWED = tiny_model(sliding_window=8)


def broken(
    layout: ParallelLayout, model: ModelSpec | None = None, **job: object
) -> list[tuple[str, str, str, str]]:
    found = violations(model or tiny_model(), tiny_job(**job), fake_stack(), layout)
    problems = [v.problem for v in found if v.reason is Reason.CONTEXT]
    return [(p.key, p.found, p.rule, p.fix) for p in problems]


@pytest.mark.parametrize("exchange", [GATHER, ULYSSES])
def test_windows_go_with_gathered_keys_and_with_heads(exchange: ContextExchange) -> None:
    assert broken(ParallelLayout(cp=2, cp_comm_type=exchange), WINDOWED) == []


def test_the_ring_refuses_windows() -> None:
    assert broken(ParallelLayout(cp=2), WINDOWED) == [
        (
            "layout.cp_comm_type",
            "p2p, windows of 8 tokens",
            '"p2p" has no sliding-window attention (Transformer Engine)',
            'cp_comm_type "all_gather" or "a2a", or cp = 1',
        )
    ]


def test_a_window_longer_than_the_sequence_is_none() -> None:
    assert broken(ParallelLayout(cp=2), tiny_model(sliding_window=32)) == []


@pytest.mark.parametrize("exchange", [GATHER, BOTH])
def test_packed_documents_need_the_ring_or_heads(exchange: ContextExchange) -> None:
    layout = ParallelLayout(cp=4, cp_comm_type=exchange, cp_inner=2 if exchange is BOTH else None)
    assert broken(layout, document_length=16) == [
        (
            "layout.cp_comm_type",
            f"{exchange}, documents of 16 tokens",
            f'"{exchange}" has no packed documents (Transformer Engine)',
            'cp_comm_type "p2p" or "a2a", or cp = 1',
        )
    ]


def test_documents_are_spread_over_the_ranks() -> None:
    assert broken(ParallelLayout(cp=4), document_length=12) == [
        (
            "job.document_length",
            "12",
            "must divide by 2 x cp = 8: documents are spread over the cp ranks",
            "8 or 16 or smaller cp",
        )
    ]


def test_documents_fit_in_a_sequence() -> None:
    assert broken(ParallelLayout(), document_length=33) == [
        (
            "job.document_length",
            "33",
            "documents are packed into sequences of seq_length = 32",
            "at most 32",
        )
    ]


def test_ulysses_needs_heads_for_its_ranks() -> None:
    model = tiny_model(num_key_value_heads=2)
    assert broken(ParallelLayout(cp=4, cp_comm_type=ULYSSES), model) == [
        (
            "layout.cp",
            "4 query and 2 key-value heads a tp rank, cp 4",
            '"a2a" needs both to divide by cp',
            'cp of 1, 2, a smaller tp, or cp_comm_type "p2p"',
        )
    ]


@pytest.mark.parametrize(("inner", "found"), [(None, "none"), (1, "1"), (4, "4"), (3, "3")])
def test_the_hierarchy_needs_two_levels(inner: int | None, found: str) -> None:
    layout = ParallelLayout(cp=4, cp_comm_type=BOTH, cp_inner=inner)
    key, seen, rule, fix = broken(layout)[0]
    assert (key, seen, rule, fix) == (
        "layout.cp_inner",
        found,
        "must divide cp = 4, and be neither 1 nor cp",
        "cp_inner of 2",
    )


@pytest.mark.parametrize("cp", [1, 4])
def test_inner_groups_need_the_hierarchy(cp: int) -> None:
    assert broken(ParallelLayout(cp=cp, cp_inner=2)) == [
        ("layout.cp_inner", "2", 'cp_inner needs cp_comm_type "a2a+p2p"', "leave it out")
    ]


def test_an_exchange_of_nothing_is_refused() -> None:
    assert broken(ParallelLayout(cp_comm_type=ULYSSES)) == [
        (
            "layout.cp_comm_type",
            "a2a",
            "cp = 1 exchanges nothing",
            "leave it out, or cp of 2 or more",
        )
    ]
