"""Counts of tokens, and how many domains a token visits, by hand and by playing the router."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.parallel.routing import Tokens, count_tokens, expected_parts
from simulator.workload.job import Routing
from simulator.workload.layer import MoeSpec
from tests.simulator.parallel.mixtures import experts_of, shard_of, tiny_mixture

MOE = experts_of(tiny_mixture())
DEEPSEEK = replace(MOE, experts=256, experts_per_token=8, groups=8, groups_per_token=4)


def test_each_rank_sends_k_copies_and_an_expert_sees_those_of_all_ranks() -> None:
    # 2 x 32 tokens, 128 copies, as many come back for 2 of 8 experts.
    assert count_tokens(MOE, shard_of(ep=4, dp=4)) == Tokens(
        own=64.0, copies=128.0, received=128.0, per_expert=64, local_experts=2, model_share=1.0
    )


def test_tensor_ranks_send_their_slices_and_experts_cut_by_etp_see_all_of_them() -> None:
    # 32 own tokens, 64 copies; the two etp ranks gather 128 rows for 2 experts.
    shard = shard_of(tp=2, dp=2, ep=4, etp=2, sequence_parallel=True)
    assert count_tokens(MOE, shard) == Tokens(
        own=32.0, copies=64.0, received=64.0, per_expert=64, local_experts=2, model_share=1.0
    )


def test_the_busiest_rank_gets_the_imbalance_more() -> None:
    tokens = count_tokens(MOE, shard_of(ep=4, dp=4, moe=Routing(load_imbalance=1.25)))
    assert (tokens.received, tokens.per_expert, tokens.model_share) == (160.0, 80, 0.8)


def test_experts_are_padded_to_their_capacity() -> None:
    # ceil(1.4 x 64 x 2 / 8) = ceil(22.4) = 23 slots an expert and sender, of 16 that are needed.
    tokens = count_tokens(MOE, shard_of(ep=4, dp=4, moe=Routing(capacity_factor=1.4)))
    assert (tokens.copies, tokens.per_expert, tokens.model_share) == (184.0, 92, 64 / 92)


def test_a_capacity_below_one_drops_tokens_but_not_model_flops() -> None:
    tokens = count_tokens(MOE, shard_of(ep=4, dp=4, moe=Routing(capacity_factor=0.5)))
    assert (tokens.per_expert, tokens.model_share) == (32, 2.0)


@given(
    ep=st.sampled_from((1, 2, 4, 8)),
    tp=st.sampled_from((1, 2, 4)),
    whole_experts=st.booleans(),
)
def test_ranks_together_compute_every_choice_once(ep: int, tp: int, whole_experts: bool) -> None:
    etp = 1 if whole_experts else tp
    shard = shard_of(tp=tp, dp=8, ep=ep, etp=etp, sequence_parallel=tp > 1)
    tokens = count_tokens(MOE, shard)
    # Each row is computed by the etp ranks that share its expert, so by ep ranks in all.
    assert tokens.computed * ep == ep * etp * tokens.own * 2


def test_a_token_of_mixtral_visits_11_of_7_halves() -> None:
    # Both experts are in one half with C(4, 2) / C(8, 2) = 3/14 a half.
    assert expected_parts(MOE, 2) == pytest.approx(2 * (1 - 3 / 14))


def test_a_token_visits_as_many_ranks_as_experts_where_each_has_one() -> None:
    assert expected_parts(MOE, 8) == pytest.approx(2.0)


def test_nothing_is_spread_over_one_part() -> None:
    assert expected_parts(DEEPSEEK, 1) == 1.0


def test_groups_that_fill_a_domain_each_limit_its_domains() -> None:
    # 4 of 8 groups; one of them has none of 8 experts of 128 with C(96, 8) / C(128, 8) = 0.0927.
    missed = 1.0
    for i in range(8):
        missed *= (96 - i) / (128 - i)
    assert expected_parts(DEEPSEEK, 8) == pytest.approx(4 * (1 - missed))


def _visited(moe: MoeSpec, parts: int, dice: random.Random) -> int:
    width = moe.experts // moe.groups
    chosen = dice.sample(range(moe.groups), moe.groups_per_token)
    candidates = [group * width + i for group in chosen for i in range(width)]
    size = moe.experts // parts
    return len({expert // size for expert in dice.sample(candidates, moe.experts_per_token)})


@pytest.mark.parametrize("parts", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("moe", [MOE, DEEPSEEK, replace(DEEPSEEK, groups=1, groups_per_token=1)])
def test_playing_the_router_visits_as_many_parts(moe: MoeSpec, parts: int) -> None:
    if moe.experts % parts:
        return
    dice, tries = random.Random(parts), 4000
    mean = sum(_visited(moe, parts, dice) for _ in range(tries)) / tries
    # 4000 tries of a number with a deviation below 1.3 leave 0.02; four of them are allowed.
    assert mean == pytest.approx(expected_parts(moe, parts), abs=0.08)


@given(parts=st.sampled_from((1, 2, 4, 8, 16, 64, 256)), groups=st.sampled_from((1, 2, 8, 16)))
def test_parts_are_at_most_those_there_are_and_those_chosen(parts: int, groups: int) -> None:
    moe = replace(DEEPSEEK, groups=groups, groups_per_token=max(1, groups // 2))
    assert 1.0 <= expected_parts(moe, parts) <= min(8, parts) + 1e-9


def test_where_each_rank_holds_all_experts_none_is_busier_than_another() -> None:
    alone = [
        count_tokens(experts_of(tiny_mixture()), shard_of(moe=Routing(load_imbalance=f)))
        for f in (1.0, 1.5)
    ]
    assert alone[0] == alone[1]
