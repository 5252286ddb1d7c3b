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
from simulator.schedule.action import Action, ActionKind
from simulator.schedule.graph import WorkKind, build_graph
from simulator.schedule.registry import SCHEDULES, WARM_UPS
from simulator.schedule.verify import (
    ScheduleError,
    check_complete,
    dependency,
    in_dependency_order,
    in_flight,
)
from tests.fakes import fake_stack, tiny_job, tiny_model
from tests.simulator.steps import bare_shape, uniform_costs

every_schedule = pytest.mark.parametrize("name", list(SCHEDULES))

IN_FLIGHT: dict[ScheduleName, Callable[[int, int, int, int], int]] = {
    # Huang et al. 2019: every activation is kept.
    ScheduleName.GPIPE: lambda stage, pp, vpp, m: vpp * m,
    # Narayanan et al. 2021, section 2.2.1.
    ScheduleName.ONE_F_ONE_B: lambda stage, pp, vpp, m: min(pp - stage, m),
    # Megatron-LM's warm-up and one more; all of them where there is one group of micro-batches.
    ScheduleName.INTERLEAVED: lambda stage, pp, vpp, m: (
        vpp * m if m == pp else min(2 * (pp - stage - 1) + (vpp - 1) * pp + 1, vpp * m)
    ),
}
BUBBLES: dict[ScheduleName, Callable[[int, int, float, float], float]] = {
    ScheduleName.GPIPE: lambda pp, vpp, f, b: (pp - 1) * (f + b),
    ScheduleName.ONE_F_ONE_B: lambda pp, vpp, f, b: (pp - 1) * (f + b),
    ScheduleName.INTERLEAVED: lambda pp, vpp, f, b: (pp - 1) * (f + b) / vpp,
}

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
    groups = st.integers(1, 4).map(lambda n: n * pp)
    return pp, vpp, draw(groups | st.integers(1, 20))


def legal(name: ScheduleName, shape: Shape) -> Shape:
    pp, vpp, micro_batches = shape
    vpp = 1 if name is ScheduleName.ONE_F_ONE_B else vpp
    assume(is_legal(name, pp, vpp, micro_batches))
    return pp, vpp, micro_batches


@every_schedule
@given(shape=shapes())
def test_each_stage_runs_every_pass_exactly_once(name: ScheduleName, shape: Shape) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    check_complete(SCHEDULES[name](pp, vpp, micro_batches), vpp, micro_batches)


@every_schedule
@given(shape=shapes())
def test_stages_never_wait_for_each_other_for_ever(name: ScheduleName, shape: Shape) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    order = list(in_dependency_order(SCHEDULES[name](pp, vpp, micro_batches), vpp))
    assert len(order) == 2 * pp * vpp * micro_batches


@every_schedule
@given(shape=shapes())
def test_each_pass_follows_what_it_needs(name: ScheduleName, shape: Shape) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    order = list(in_dependency_order(SCHEDULES[name](pp, vpp, micro_batches), vpp))
    place = {action: i for i, action in enumerate(order)}
    needed = {action: dependency(action, pp, vpp) for action in order}
    late = [a for a, n in needed.items() if n is not None and place[n] >= place[a]]
    assert late == []


@every_schedule
@given(shape=shapes())
def test_activations_in_flight_are_those_of_the_paper(name: ScheduleName, shape: Shape) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    alive = [sum(s.by_chunk.values()) for s in in_flight(name, pp, vpp, micro_batches)]
    assert alive == [IN_FLIGHT[name](stage, pp, vpp, micro_batches) for stage in range(pp)]


@every_schedule
@given(shape=shapes())
def test_a_stage_warms_up_with_forward_passes_and_then_runs_pairs(
    name: ScheduleName, shape: Shape
) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    total = vpp * micro_batches
    kinds = [
        "".join(action.kind for action in actions)
        for actions in SCHEDULES[name](pp, vpp, micro_batches)
    ]
    warm_ups = [WARM_UPS[name](stage, pp, vpp, micro_batches) for stage in range(pp)]
    assert kinds == ["F" * w + "FB" * (total - w) + "B" * w for w in warm_ups]


@every_schedule
@given(shape=shapes(), forward=st.integers(1, 9), backward=st.integers(1, 9))
def test_the_bubble_is_that_of_the_paper(
    name: ScheduleName, shape: Shape, forward: int, backward: int
) -> None:
    pp, vpp, micro_batches = legal(name, shape)
    assume(name is not ScheduleName.GPIPE or vpp == 1)
    graph = build_graph(bare_shape(name, pp, vpp, micro_batches))
    seconds = {WorkKind.FORWARD: forward / vpp, WorkKind.BACKWARD: backward / vpp}
    bubble = estimate_step_time(graph, uniform_costs(graph, seconds)) - micro_batches * (
        forward + backward
    )
    assert bubble == pytest.approx(BUBBLES[name](pp, vpp, forward, backward), abs=1e-9)


def test_interleaving_shrinks_the_bubble_by_vpp() -> None:
    graphs = {
        vpp: build_graph(bare_shape(name, 4, vpp, 8))
        for name, vpp in ((ScheduleName.ONE_F_ONE_B, 1), (ScheduleName.INTERLEAVED, 3))
    }
    bubbles = {
        vpp: estimate_step_time(
            graph, uniform_costs(graph, {WorkKind.FORWARD: 3 / vpp, WorkKind.BACKWARD: 6 / vpp})
        )
        - 8 * 9
        for vpp, graph in graphs.items()
    }
    assert bubbles == pytest.approx({1: 27.0, 3: 9.0})


def test_first_stage_interleaved_holds_pp_vpp_and_pp_less_one_chunks() -> None:
    # Korthikanti et al. 2022, section 4.2.3: L (1 + (p - 1) / (p m)) layers.
    alive = in_flight(ScheduleName.INTERLEAVED, 4, 2, 8)[0]
    assert sum(alive.by_chunk.values()) == 4 * 2 + 4 - 1


def test_a_missing_pass_is_found() -> None:
    schedule = SCHEDULES[ScheduleName.GPIPE](2, 1, 2)
    with pytest.raises(ScheduleError, match="stage 1: 3 actions, 4 expected"):
        check_complete((schedule[0], schedule[1][:-1]), 1, 2)


def test_a_pass_that_runs_twice_is_found() -> None:
    (stage,) = SCHEDULES[ScheduleName.GPIPE](1, 1, 2)
    with pytest.raises(ScheduleError):
        check_complete(((*stage[:-1], stage[0]),), 1, 2)


def test_a_deadlock_is_found_and_its_passes_are_named() -> None:
    forward, backward = (Action(0, kind, 0) for kind in ActionKind)
    with pytest.raises(ScheduleError, match=r"deadlock at 0B0\.0"):
        list(in_dependency_order(((backward, forward),), 1))


def test_backward_of_the_last_stage_needs_its_own_forward() -> None:
    needed = dependency(Action(1, ActionKind.BACKWARD, 5, 2), 2, 3)
    assert needed == Action(1, ActionKind.FORWARD, 5, 2)


def test_forward_of_a_later_chunk_comes_from_the_last_stage() -> None:
    needed = dependency(Action(0, ActionKind.FORWARD, 5, 1), 4, 2)
    assert needed == Action(3, ActionKind.FORWARD, 5, 0)
