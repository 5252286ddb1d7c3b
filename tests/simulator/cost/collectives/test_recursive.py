"""Recursive doubling and halving played with what ranks hold: everyone must get everything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.collectives.rounds import rounds_of
from simulator.cost.collectives.select import plan_collective
from simulator.cost.plan import LinkKind
from simulator.parallel.groups import Collective, GroupShape
from tests.simulator.cost.collectives.machines import machine

DOUBLING, HALVING = "recursive_doubling", "recursive_halving"
shapes = st.tuples(st.integers(1, 9), st.integers(1, 9)).filter(lambda shape: max(shape) > 1)


@given(shape=shapes)
def test_after_an_all_gather_each_rank_holds_all_pieces_and_sent_what_it_held(
    shape: tuple[int, int],
) -> None:
    domains, width = shape
    size = domains * width
    holds = [{rank} for rank in range(size)]
    for each in rounds_of(DOUBLING, Collective.ALL_GATHER, GroupShape(size=size, per_domain=width)):
        before = [set(pieces) for pieces in holds]
        for source, target, weight in zip(
            each.source.tolist(), each.target.tolist(), each.weight.tolist(), strict=True
        ):
            # What the target lacks; sent pieces are never known already.
            assert weight * size == pytest.approx(len(before[source] - before[target]))
            holds[target] |= before[source]
    assert all(len(pieces) == size for pieces in holds)


@pytest.mark.parametrize("algorithm", [DOUBLING, HALVING])
@given(shape=shapes)
def test_after_an_all_reduce_each_rank_has_heard_of_all(
    shape: tuple[int, int], algorithm: str
) -> None:
    domains, width = shape
    size = domains * width
    heard = [{rank} for rank in range(size)]
    for each in rounds_of(
        algorithm, Collective.ALL_REDUCE, GroupShape(size=size, per_domain=width)
    ):
        before = [set(ranks) for ranks in heard]
        for source, target in zip(each.source.tolist(), each.target.tolist(), strict=True):
            heard[target] |= before[source]
    assert all(len(ranks) == size for ranks in heard)


@pytest.mark.parametrize("power", [1, 2, 5])
def test_a_reduce_scatter_of_a_power_of_two_halves_what_it_sends(power: int) -> None:
    group = GroupShape(size=2**power, per_domain=2**power)
    rounds = rounds_of(HALVING, Collective.REDUCE_SCATTER, group)
    assert [float(each.weight.max()) for each in rounds] == [
        2.0**-number for number in range(1, power + 1)
    ]


def test_the_partners_of_a_reduce_scatter_come_nearer() -> None:
    rounds = rounds_of(HALVING, Collective.REDUCE_SCATTER, GroupShape(size=8, per_domain=2))
    assert [int(abs(each.source - each.target).max()) for each in rounds] == [4, 2, 1]


def test_ranks_that_fold_in_their_domain_send_nothing_across() -> None:
    # Three in each of two domains: the third folds into the first, two exchange across.
    plan = plan_collective(
        Collective.ALL_REDUCE,
        1.0,
        GroupShape(size=6, per_domain=3),
        machine(),
        algorithm=DOUBLING,
    )
    links = [phase.link for phase in plan.phases]
    inside, outside = LinkKind.SCALE_UP, LinkKind.SCALE_OUT
    assert links == [inside, inside, outside, inside]
    (across,) = (
        each
        for each in rounds_of(DOUBLING, Collective.ALL_REDUCE, plan.group)
        if abs(each.source - each.target).max() == 3
    )
    assert sorted(across.source.tolist()) == [0, 1, 3, 4]
