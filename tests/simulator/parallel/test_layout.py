"""Layouts and where their process groups lie."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.parallel.domains import group_shape
from simulator.parallel.groups import GroupShape
from simulator.parallel.layout import (
    Axis,
    ParallelLayout,
    ScheduleName,
    axis_group,
    stage_pair,
)

SIZES = st.sampled_from((1, 2, 4, 8))


def coordinates(layout: ParallelLayout) -> list[tuple[int, int, int, int]]:
    """Return (pp, dp, cp, tp) of each rank in Megatron's order: tp fastest, then cp, dp, pp."""
    return [
        (p, d, c, t)
        for p in range(layout.pp)
        for d in range(layout.dp)
        for c in range(layout.cp)
        for t in range(layout.tp)
    ]


def share_of_rank_0(layout: ParallelLayout, kept: tuple[int, ...], domain: int) -> int:
    """Return how many ranks that agree with rank 0 in coordinates `kept` are in its domain."""
    place = coordinates(layout)
    members = [r for r, c in enumerate(place) if all(c[i] == place[0][i] for i in kept)]
    return sum(rank < domain for rank in members)


def test_ranks_multiply() -> None:
    assert ParallelLayout(tp=2, cp=3, dp=4, pp=5).world_size == 120


@pytest.mark.parametrize(
    ("vpp", "schedule", "effective"),
    [
        (1, None, ScheduleName.ONE_F_ONE_B),
        (2, None, ScheduleName.INTERLEAVED),
        (2, ScheduleName.GPIPE, ScheduleName.GPIPE),
    ],
)
def test_schedule_follows_from_vpp_where_none_is_named(
    vpp: int, schedule: ScheduleName | None, effective: ScheduleName
) -> None:
    assert ParallelLayout(pp=2, vpp=vpp, schedule=schedule).effective_schedule is effective


@pytest.mark.parametrize(
    ("axis", "kept"),
    [(Axis.TENSOR, (0, 1, 2)), (Axis.CONTEXT, (0, 1, 3)), (Axis.DATA, (0, 3))],
)
@given(sizes=st.tuples(SIZES, SIZES, SIZES), domain=st.sampled_from((1, 2, 4, 8, 16)))
def test_group_has_as_many_ranks_in_a_domain_as_enumeration_finds(
    axis: Axis, kept: tuple[int, ...], sizes: tuple[int, int, int], domain: int
) -> None:
    layout = ParallelLayout(tp=sizes[0], cp=sizes[1], dp=sizes[2])
    group = axis_group(layout, axis, domain)
    assert group.per_domain == share_of_rank_0(layout, kept, domain)


@pytest.mark.parametrize(
    ("layout", "domain", "domains"),
    [
        (ParallelLayout(tp=4, pp=2), 8, 1),
        (ParallelLayout(tp=8, pp=2), 8, 2),
        (ParallelLayout(tp=2, dp=4, pp=4), 8, 2),
        (ParallelLayout(tp=2, dp=4, pp=4), 72, 1),
        (ParallelLayout(tp=8), 8, 1),
    ],
)
def test_neighbouring_stages_meet_in_a_domain_or_over_the_network(
    layout: ParallelLayout, domain: int, domains: int
) -> None:
    assert axis_group(layout, Axis.PIPELINE, domain).domains == domains


@given(
    sizes=st.tuples(SIZES, SIZES, SIZES),
    stages=st.tuples(st.integers(0, 7), st.integers(0, 7)),
    domain=st.sampled_from((1, 2, 4, 8, 16)),
)
def test_two_stages_meet_in_a_domain_only_where_all_their_ranks_do(
    sizes: tuple[int, int, int], stages: tuple[int, int], domain: int
) -> None:
    layout = ParallelLayout(tp=sizes[0], cp=sizes[1], dp=sizes[2], pp=8)
    held = sizes[0] * sizes[1] * sizes[2]
    nodes = [[rank // domain for rank in range(s * held, (s + 1) * held)] for s in stages]
    pair = stage_pair(layout, *stages, domain)
    assert (pair.domains == 1) == (nodes[0] == nodes[1])


@given(size=st.integers(1, 64), stride=st.integers(1, 16), domain=st.integers(1, 64))
def test_groups_spread_evenly_over_whole_domains(size: int, stride: int, domain: int) -> None:
    group = group_shape(size, stride, domain)
    assert group.domains * group.per_domain == size


def test_a_group_that_fits_a_domain_unevenly_takes_the_next_even_spread_below() -> None:
    # Four of the six ranks would fit; three and three are taken.
    assert group_shape(6, 2, 8) == GroupShape(size=6, per_domain=3)


def test_a_group_that_does_not_spread_evenly_is_our_own_bug() -> None:
    with pytest.raises(AssertionError):
        GroupShape(size=6, per_domain=4)


def test_micro_batches_are_the_batch_over_dp_and_micro_batch() -> None:
    assert ParallelLayout(dp=4, micro_batch_size=2).micro_batches(64) == 8


def test_a_layout_reads_as_in_papers() -> None:
    text = str(ParallelLayout(tp=8, pp=4, dp=2, cp=2, vpp=3, micro_batch_size=2))
    assert text == "tp8 pp4 dp2 cp2 vpp3 mb2"
