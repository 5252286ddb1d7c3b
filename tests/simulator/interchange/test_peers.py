"""Whom a rank talks to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from simulator.interchange.peers import (
    AcrossStages,
    Neighbour,
    SamePlace,
    Spread,
    members_of,
    peer_of,
)
from simulator.parallel.layout import ParallelLayout

SIZES = st.integers(1, 4)


@given(tp=SIZES, cp=SIZES, dp=SIZES, pp=SIZES)
def test_groups_of_an_axis_hold_every_rank_once(tp: int, cp: int, dp: int, pp: int) -> None:
    layout = ParallelLayout(tp=tp, cp=cp, dp=dp, pp=pp)
    for size, stride in ((tp, 1), (cp, tp), (dp, tp * cp), (cp * dp, tp)):
        groups = {
            members_of(Spread("x", size, stride), r, layout) for r in range(layout.world_size)
        }
        assert sorted(rank for group in groups for rank in group) == list(range(layout.world_size))
        assert {len(group) for group in groups} == {size}


@given(tp=SIZES, dp=SIZES, pp=SIZES)
def test_ranks_of_a_group_agree_on_it(tp: int, dp: int, pp: int) -> None:
    layout = ParallelLayout(tp=tp, dp=dp, pp=pp)
    for rank in range(layout.world_size):
        for group in (Spread("x", dp, tp), AcrossStages("y", (0, pp - 1) if pp > 1 else (0,))):
            members = members_of(group, rank, layout)
            stages = {member * pp // layout.world_size for member in members}
            if rank * pp // layout.world_size in stages:
                assert rank in members
                assert {members_of(group, member, layout) for member in members} == {members}


@given(cp=SIZES, tp=SIZES, dp=SIZES)
def test_who_is_behind_the_next_one_of_a_ring_is_the_rank_itself(cp: int, tp: int, dp: int) -> None:
    layout = ParallelLayout(tp=tp, cp=cp, dp=dp)
    for rank in range(layout.world_size):
        after = peer_of(Neighbour(cp, tp, 1), rank, layout)
        assert peer_of(Neighbour(cp, tp, -1), after, layout) == rank


def test_pipeline_peers_stand_at_the_same_place() -> None:
    layout = ParallelLayout(tp=2, dp=2, pp=2)
    assert [peer_of(SamePlace(1), rank, layout) for rank in range(4)] == [4, 5, 6, 7]
