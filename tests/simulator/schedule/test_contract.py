"""Every registered schedule is complete, free of deadlock, and has the memory and bubble of its
paper."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from simulator.estimate import estimate_step_time
from simulator.parallel.checks import Reason, violations
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.parallel.placement import placement_of
from simulator.schedule.action import Action, ActionKind, Schedule
from simulator.schedule.graph import build_graph
from simulator.schedule.memory import fullest_moments, in_flight, stand_in
from simulator.schedule.profile import stage_profiles
from simulator.schedule.registry import SCHEDULES, ScheduleOptions, build_schedule
from simulator.schedule.tasks import WorkKind
from simulator.schedule.verify import (
    ScheduleError,
    check_complete,
    dependency,
    in_dependency_order,
)
from tests.fakes import fake_stack, tiny_job, tiny_model
from tests.simulator.steps import bare_shape, uniform_costs

every_schedule = pytest.mark.parametrize("name", list(SCHEDULES))
Z = ScheduleName

IN_FLIGHT: dict[ScheduleName, Callable[[int, int, int, int], int]] = {
    # Huang et al. 2019: every activation is kept.
    Z.GPIPE: lambda stage, pp, vpp, m: m,
    # Lamy-Poirier 2022, section 3.2: of every chunk.
    Z.LOOPED_BFS: lambda stage, pp, vpp, m: vpp * m,
    # Narayanan et al. 2021, section 2.2.1.
    Z.ONE_F_ONE_B: lambda stage, pp, vpp, m: min(pp - stage, m),
    # Megatron-LM's warm-up and one more; all of them where there is one group of micro-batches.
    Z.INTERLEAVED: lambda stage, pp, vpp, m: (
        vpp * m if m == pp else min(2 * (pp - stage - 1) + (vpp - 1) * pp + 1, vpp * m)
    ),
    # Qi et al. 2024, section 2.2: on each stage what 1F1B holds on the first one; with chunks a
    # round of each but the last, and pp.
    Z.ZERO_BUBBLE_H1: lambda stage, pp, vpp, m: min(
        pp + (vpp - 1) * (m // max(1, m // pp)), vpp * m
    ),
    # Section 6: 2 pp chunks, which are pp stages.
    Z.ZERO_BUBBLE_V: lambda stage, pp, vpp, m: 2 * pp,
    # DeepSeek-AI 2024, table 2: PP + 1.
    Z.DUALPIPE: lambda stage, pp, vpp, m: pp + 1,
    # The same of twice as many half stages.
    Z.DUALPIPE_V: lambda stage, pp, vpp, m: 2 * pp + 1,
}
"""Chunks alive, of (stage, pp, vpp, micro-batches)."""
BUBBLES: dict[ScheduleName, Callable[[int, int, float, float, float], float]] = {
    Z.GPIPE: lambda pp, vpp, f, i, w: (pp - 1) * (f + i + w),
    Z.LOOPED_BFS: lambda pp, vpp, f, i, w: (pp - 1) * (f + i + w) / vpp,
    Z.ONE_F_ONE_B: lambda pp, vpp, f, i, w: (pp - 1) * (f + i + w),
    Z.INTERLEAVED: lambda pp, vpp, f, i, w: (pp - 1) * (f + i + w) / vpp,
    # Qi et al. 2024, section 2.2.
    Z.ZERO_BUBBLE_H1: lambda pp, vpp, f, i, w: (pp - 1) * (f + i - w) / vpp,
    # Section 6: none but the fill, as no step of ours starts before all stages are done.
    Z.ZERO_BUBBLE_V: lambda pp, vpp, f, i, w: (pp - 1) * max(f, i) / 2,
}
"""Seconds, of (pp, vpp, forward, input gradient, weight gradient)."""

Shape = tuple[int, int, int]


def is_legal(name: ScheduleName, pp: int, vpp: int, micro_batches: int) -> bool:
    layout = ParallelLayout(pp=pp, vpp=vpp, schedule=name)
    job = tiny_job(global_batch_size=micro_batches)
    broken = violations(tiny_model(num_hidden_layers=pp * vpp), job, fake_stack(), layout)
    return Reason.SCHEDULE not in {violation.reason for violation in broken}


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Return (pp, vpp, micro-batches), often in whole groups of pp."""
    pp, vpp = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    groups = st.integers(1, 6).map(lambda n: n * pp)
    return pp, vpp, draw(groups | st.integers(1, 20))


def legal(name: ScheduleName, shape: Shape) -> Shape:
    pp, vpp, micro_batches = shape
    match name:
        case Z.ONE_F_ONE_B | Z.GPIPE:
            vpp = 1
        case Z.ZERO_BUBBLE_V:
            vpp = 2
        case Z.DUALPIPE:
            pp, vpp = pp + pp % 2, 2
            micro_batches = 2 * max(pp, micro_batches)
        case Z.DUALPIPE_V:
            vpp, micro_batches = 2, 2 * pp + micro_batches
        case _:
            pass
    assume(is_legal(name, pp, vpp, micro_batches))
    return pp, vpp, micro_batches


def ordered(name: ScheduleName, shape: Shape) -> list[Action]:
    pp, vpp, micro_batches = shape
    schedule = SCHEDULES[name](pp, vpp, micro_batches)
    return list(in_dependency_order(schedule, vpp, placement_of(name)))


@every_schedule
@given(shape=shapes())
def test_each_stage_runs_every_pass_exactly_once(name: ScheduleName, shape: Shape) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    check_complete(SCHEDULES[name](pp, vpp, micro_batches), vpp, micro_batches, placement_of(name))


@every_schedule
@given(shape=shapes())
def test_stages_never_wait_for_each_other_for_ever(name: ScheduleName, shape: Shape) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    schedule = SCHEDULES[name](pp, vpp, micro_batches)
    assert len(ordered(name, (pp, vpp, micro_batches))) == sum(map(len, schedule))


@every_schedule
@given(shape=shapes())
def test_each_pass_follows_what_it_needs(name: ScheduleName, shape: Shape) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    order = ordered(name, (pp, vpp, micro_batches))
    whole = {ActionKind.BACKWARD_INPUT: ActionKind.BACKWARD}
    place = {a._replace(kind=whole.get(a.kind, a.kind)): i for i, a in enumerate(order)}
    late = []
    for i, action in enumerate(order):
        needed = dependency(action, pp, vpp, placement_of(name))
        if needed and place[needed._replace(kind=whole.get(needed.kind, needed.kind))] >= i:
            late.append(action)
    assert late == []


@every_schedule
@given(shape=shapes())
def test_activations_in_flight_are_those_of_the_paper(name: ScheduleName, shape: Shape) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    assume(name is not Z.ZERO_BUBBLE_V or micro_batches >= 2 * pp)
    alive = [stage.count for stage in in_flight(name, pp, vpp, micro_batches)]
    assert alive == [IN_FLIGHT[name](stage, pp, vpp, micro_batches) for stage in range(pp)]


@every_schedule
@given(shape=shapes(), more=st.integers(1, 40))
def test_a_shorter_schedule_stands_for_a_longer_one(
    name: ScheduleName, shape: Shape, more: int
) -> None:
    pp, vpp, micro_batches = legal(name, (shape[0], shape[1], shape[2] + more * shape[0]))
    schedule = SCHEDULES[name](pp, vpp, micro_batches)
    enough = stand_in(name, pp, vpp, micro_batches)
    assert _peaks(schedule, vpp) == _peaks(build_schedule(name, pp, vpp, enough), vpp)


def _peaks(schedule: Schedule, vpp: int) -> list[float]:
    """Return the largest sum of what each stage holds, with sizes that tell the chunks apart."""
    peaks = []
    for actions in schedule:
        held = worst = 0.0
        for kind, chunk in ((action.kind, action.chunk) for action in actions):
            whole, waiting = 10.0 + chunk, 7.0 + 2 * chunk
            match kind:
                case ActionKind.FORWARD:
                    held += whole
                case ActionKind.BACKWARD:
                    held -= whole
                case ActionKind.BACKWARD_INPUT:
                    held += waiting - whole
                case ActionKind.BACKWARD_WEIGHT:
                    held -= waiting
            worst = max(worst, held)
        peaks.append(worst)
    return peaks


@every_schedule
@given(shape=shapes())
def test_one_of_the_fullest_moments_is_the_peak(name: ScheduleName, shape: Shape) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    moments = fullest_moments(name, pp, vpp, micro_batches)
    found = [
        max(
            sum((10.0 + c) * n for c, n in moment.by_chunk.items())
            + sum((7.0 + 2 * c) * n for c, n in moment.for_weights.items())
            for moment in stage
        )
        for stage in moments
    ]
    assert found == _peaks(SCHEDULES[name](pp, vpp, micro_batches), vpp)


@every_schedule
@given(shape=shapes(), more=st.integers(1, 20))
def test_the_profile_of_a_long_schedule_is_that_of_its_list(
    name: ScheduleName, shape: Shape, more: int
) -> None:
    pp, vpp, micro_batches = legal(name, (shape[0], shape[1], shape[2] + more * shape[0]))
    schedule = SCHEDULES[name](pp, vpp, micro_batches)
    for actions, profile in zip(
        schedule, stage_profiles(name, pp, vpp, micro_batches), strict=True
    ):
        kinds = [action.kind for action in actions]
        backs = [i for i, kind in enumerate(kinds) if kind in "BI"]
        last = max(i for i, kind in enumerate(kinds) if kind == "F")
        counts = [sum(n for _, n in part) for part in (profile.before, profile.after)]
        ends = [sum(n for _, n in part) for part in (profile.trailing, profile.total)]
        assert counts == [backs[0], len(kinds) - 1 - last]
        assert ends == [len(kinds) - 1 - backs[-1], len(kinds)]


def bubble_of(
    name: ScheduleName, shape: Shape, forward: float, of_input: float, of_weights: float
) -> float:
    """Return step time less work, with passes of a whole stage as long as given."""
    pp, vpp, micro_batches = shape
    graph = build_graph(bare_shape(name, pp, vpp, micro_batches))
    # The two parts of the model on a stage of DualPipe are whole stages; half of the micro-batches
    # meet each.
    chunks = 1 if name is Z.DUALPIPE else vpp
    seconds = {
        WorkKind.FORWARD: forward / chunks,
        WorkKind.BACKWARD: (of_input + of_weights) / chunks,
        WorkKind.BACKWARD_INPUT: of_input / chunks,
        WorkKind.BACKWARD_WEIGHT: of_weights / chunks,
    }
    work = micro_batches * (forward + of_input + of_weights)
    return estimate_step_time(graph, uniform_costs(graph, seconds)) - work


@pytest.mark.parametrize("name", list(BUBBLES))
@given(
    shape=shapes(),
    of_weights=st.integers(1, 9),
    more=st.integers(0, 3),
    extra=st.integers(0, 1),
)
def test_the_bubble_is_that_of_the_paper(
    name: ScheduleName, shape: Shape, of_weights: int, more: int, extra: int
) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    assume(name is not Z.LOOPED_BFS or micro_batches >= pp)
    # Below so many the stages never reach their steady state.
    assume(not name.startswith("zb") or micro_batches >= 2 * pp)
    forward, of_input = of_weights, of_weights + extra * (name is Z.ZERO_BUBBLE_H1)
    if not name.startswith("zb"):
        forward, of_input = of_weights + more, of_weights + extra
    found = bubble_of(name, (pp, vpp, micro_batches), forward, of_input, of_weights)
    expected = BUBBLES[name](pp, vpp, forward, of_input, of_weights)
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", [Z.DUALPIPE, Z.DUALPIPE_V])
@given(shape=shapes(), lengths=st.tuples(*[st.integers(4, 6)] * 3))
def test_dualpipe_rests_at_most_as_long_as_its_paper_says(
    name: ScheduleName, shape: Shape, lengths: tuple[int, int, int]
) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    forward, of_input, of_weights = lengths
    assume(of_weights <= min(forward, of_input))
    found = bubble_of(name, (pp, vpp, micro_batches), *lengths)
    # DeepSeek-AI 2024, table 2: (PP / 2 - 1) (F&B + B - 3W), F&B = F + B where nothing is gained by
    # running the two side by side. DualPipeV is half of a DualPipe of 2 PP half stages.
    pair = forward + 2 * (of_input + of_weights) - 3 * of_weights
    ranks, size = (pp // 2 - 1, 1.0) if name is Z.DUALPIPE else (pp - 1, 0.5)
    assert found <= ranks * size * pair + 1e-9
    assert found >= ranks * size * (forward + of_input - of_weights) - 1e-9


@pytest.mark.parametrize(
    ("name", "vpp", "bubble"),
    [
        # pp 4, 8 micro-batches, f = i = w = 2 s of a whole stage.
        (Z.ONE_F_ONE_B, 1, 18.0),
        (Z.INTERLEAVED, 2, 9.0),
        (Z.ZERO_BUBBLE_H1, 1, 6.0),
        (Z.ZERO_BUBBLE_H1, 2, 3.0),
        (Z.ZERO_BUBBLE_V, 2, 3.0),
        (Z.DUALPIPE_V, 2, 3.0),
        (Z.DUALPIPE, 2, 2.0),
    ],
)
def test_bubbles_of_equal_passes(name: ScheduleName, vpp: int, bubble: float) -> None:
    assert bubble_of(name, (4, vpp, 8), 2.0, 2.0, 2.0) == pytest.approx(bubble)


def test_interleaving_shrinks_the_bubble_by_vpp() -> None:
    bubbles = [bubble_of(Z.INTERLEAVED, (4, vpp, 8), 3.0, 3.0, 3.0) for vpp in (1, 3)]
    assert bubbles == pytest.approx([27.0, 9.0])


def test_first_stage_interleaved_holds_pp_vpp_and_pp_less_one_chunks() -> None:
    # Korthikanti et al. 2022, section 4.2.3: L (1 + (p - 1) / (p m)) layers.
    assert in_flight(Z.INTERLEAVED, 4, 2, 8)[0].count == 4 * 2 + 4 - 1


@given(pp=st.integers(2, 4), vpp=st.integers(2, 3), group=st.integers(2, 9), m=st.integers(2, 30))
def test_interleaving_in_larger_groups_is_complete_and_holds_more(
    pp: int, vpp: int, group: int, m: int
) -> None:
    assume(pp <= group <= m)
    assume(m % group == 0 or m % group >= pp)
    options = ScheduleOptions(group)
    schedule = build_schedule(Z.INTERLEAVED, pp, vpp, m, options)
    check_complete(schedule, vpp, m)
    assert len(list(in_dependency_order(schedule, vpp))) == 2 * pp * vpp * m
    alive = [stage.count for stage in in_flight(Z.INTERLEAVED, pp, vpp, m, options)]
    assert alive == [min(2 * (pp - s - 1) + (vpp - 1) * group + 1, vpp * m) for s in range(pp)]


@pytest.mark.parametrize(("name", "vpp"), [(Z.ONE_F_ONE_B, 1), (Z.INTERLEAVED, 2)])
@given(pp=st.integers(2, 4), extra=st.integers(0, 9), groups=st.integers(1, 4))
def test_a_longer_warm_up_is_complete_and_holds_as_many_more(
    name: ScheduleName, vpp: int, pp: int, extra: int, groups: int
) -> None:
    m = groups * pp
    options = ScheduleOptions(extra=extra)
    schedule = build_schedule(name, pp, vpp, m, options)
    check_complete(schedule, vpp, m)
    assert len(list(in_dependency_order(schedule, vpp))) == 2 * pp * vpp * m
    plain = [stage.count for stage in in_flight(name, pp, vpp, m)]
    alive = [stage.count for stage in in_flight(name, pp, vpp, m, options)]
    assert alive == [min(count + extra, vpp * m) for count in plain]


def test_groups_of_pp_are_the_plain_interleaved_schedule() -> None:
    plain = build_schedule(Z.INTERLEAVED, 4, 2, 16)
    assert build_schedule(Z.INTERLEAVED, 4, 2, 16, ScheduleOptions(4)) == plain


def test_a_missing_pass_is_found() -> None:
    schedule = SCHEDULES[Z.GPIPE](2, 1, 2)
    with pytest.raises(ScheduleError, match=r"stage 1: 0 x 1B1\.0"):
        check_complete((schedule[0], schedule[1][:-1]), 1, 2)


def test_a_pass_that_runs_twice_is_found() -> None:
    (stage,) = SCHEDULES[Z.GPIPE](1, 1, 2)
    with pytest.raises(ScheduleError, match=r"2 x 0F0\.0"):
        check_complete(((*stage[:-1], stage[0]),), 1, 2)


def test_a_weight_gradient_needs_its_own_input_gradient() -> None:
    forward, of_input, of_weights = (Action(0, ActionKind(kind), 0) for kind in "FIW")
    with pytest.raises(ScheduleError, match=r"deadlock at 0W0\.0"):
        list(in_dependency_order(((forward, of_weights, of_input),), 1))


def test_a_deadlock_is_found_and_its_passes_are_named() -> None:
    forward, backward = (Action(0, ActionKind(kind), 0) for kind in "FB")
    with pytest.raises(ScheduleError, match=r"deadlock at 0B0\.0"):
        list(in_dependency_order(((backward, forward),), 1))


def test_backward_of_the_last_stage_needs_its_own_forward() -> None:
    needed = dependency(Action(1, ActionKind.BACKWARD, 5, 2), 2, 3)
    assert needed == Action(1, ActionKind.FORWARD, 5, 2)


def test_forward_of_a_later_chunk_comes_from_the_last_stage() -> None:
    needed = dependency(Action(0, ActionKind.FORWARD, 5, 1), 4, 2)
    assert needed == Action(3, ActionKind.FORWARD, 5, 0)


def test_the_way_back_of_a_v_comes_from_the_stage_behind() -> None:
    needed = dependency(Action(2, ActionKind.FORWARD, 5, 1), 4, 2, placement_of(Z.ZERO_BUBBLE_V))
    assert needed == Action(3, ActionKind.FORWARD, 5, 1)


def test_the_second_direction_of_dualpipe_starts_at_the_last_stage() -> None:
    needed = dependency(Action(3, ActionKind.FORWARD, 5, 1), 4, 2, placement_of(Z.DUALPIPE))
    assert needed is None
