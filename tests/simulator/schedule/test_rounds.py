"""Closed forms of schedules that warm up and alternate, against their lists of passes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.parallel.layout import ScheduleName
from simulator.schedule.memory import fullest_moments, fullest_of_stages, listed_moments, stand_in
from simulator.schedule.profile import StageProfile, stage_profile, stage_profiles
from simulator.schedule.registry import ScheduleOptions
from simulator.schedule.rounds import rounds_of

Pipeline = tuple[ScheduleName, int, int, int, ScheduleOptions]
Z = ScheduleName


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """Return any schedule that alternates, with its options."""
    name = draw(st.sampled_from((Z.GPIPE, Z.LOOPED_BFS, Z.ONE_F_ONE_B, Z.INTERLEAVED)))
    pp = draw(st.integers(1 if name is not Z.INTERLEAVED else 2, 6))
    vpp = draw(st.integers(2, 4)) if name in (Z.LOOPED_BFS, Z.INTERLEAVED) else 1
    if name is not Z.INTERLEAVED:
        extra = draw(st.integers(0, 3)) if name is Z.ONE_F_ONE_B else 0
        return name, pp, vpp, draw(st.integers(1, 40)), ScheduleOptions(extra=extra)
    group = draw(st.sampled_from((None, pp, pp + 1, 2 * pp, 3 * pp)))
    options = ScheduleOptions(group_size=group, extra=draw(st.integers(0, 3)))
    # The last group may be smaller, but not below pp.
    rest = pp if (group or pp) > pp and draw(st.booleans()) else 0
    return name, pp, vpp, (group or pp) * draw(st.integers(1, 6)) + rest, options


def unordered(profile: StageProfile) -> StageProfile:
    """Return a profile whose counts come in one order."""
    before, after, total = (
        tuple(sorted(counts)) for counts in (profile.before, profile.after, profile.total)
    )
    return replace(profile, before=before, after=after, total=total)


@given(pipeline=pipelines())
def test_the_fullest_moments_are_those_of_the_list(pipeline: Pipeline) -> None:
    name, pp, vpp, micro_batches, options = pipeline
    enough = stand_in(name, pp, vpp, micro_batches, options)
    assert fullest_moments(*pipeline) == listed_moments(name, pp, vpp, enough, options)


@given(pipeline=pipelines(), data=st.data())
def test_of_like_stages_the_first_holds_most(pipeline: Pipeline, data: st.DataObject) -> None:
    pp, options = pipeline[1], pipeline[4]
    first = data.draw(st.integers(0, pp - 1))
    stages = first, data.draw(st.integers(first, pp - 1))
    kept = [1.0 + data.draw(st.integers(0, 9)) for _ in range(pipeline[2])]
    found, every = (
        max(
            sum(n * kept[chunk] for chunk, n in moment.by_chunk.items())
            for moments in of_stages
            for moment in moments
        )
        for of_stages in (
            [fullest_of_stages(*pipeline[:4], options=options, stages=stages)],
            listed_moments(*pipeline)[stages[0] : stages[1] + 1],
        )
    )
    assert found == every


@given(pipeline=pipelines(), data=st.data())
def test_like_chunks_are_fullest_where_most_are_alive(
    pipeline: Pipeline, data: st.DataObject
) -> None:
    stage = data.draw(st.integers(0, pipeline[1] - 1))
    sizes, options = pipeline[:4], pipeline[4]
    every = fullest_of_stages(*sizes, options=options, stages=(stage, stage))
    alike = fullest_of_stages(*sizes, options=options, stages=(stage, stage), alike=True)
    assert {moment.count for moment in alike} == {max(moment.count for moment in every)}


@given(pipeline=pipelines())
def test_profiles_are_those_of_the_list(pipeline: Pipeline) -> None:
    closed = [stage_profile(*pipeline, stage=stage) for stage in range(pipeline[1])]
    assert [*map(unordered, closed)] == [*map(unordered, stage_profiles(*pipeline))]


@pytest.mark.parametrize("name", [Z.ZERO_BUBBLE_H1, Z.ZERO_BUBBLE_V, Z.DUALPIPE, Z.DUALPIPE_V])
def test_schedules_that_do_not_alternate_have_no_closed_form(name: ScheduleName) -> None:
    assert rounds_of(name, 4, 2, 16, stage=0) is None
