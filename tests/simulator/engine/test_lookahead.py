"""Tasks that are timed ahead, since nothing can lengthen them, end when played ones do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.plan import CommPhase, CommPlan
from simulator.cost.priced import WorkCost
from simulator.engine.fabric import Fabric
from simulator.engine.first_meeting import first_meeting
from simulator.engine.gpu import Interference
from simulator.engine.replicas import Replicas
from simulator.engine.step import EngineRun, run_step
from simulator.parallel.layout import ParallelLayout, ScheduleName
from simulator.schedule.tasks import (
    NO_TASK,
    STREAMS,
    StreamKind,
    TaskGraph,
    Work,
    WorkKind,
)
from tests.fakes import fake_stack, tiny_job
from tests.simulator.steps import CAPACITY, Step, forecaster, step_of
from tests.simulator.strategies import Setup, setups

PLAYED = Fabric(record=True)
"""What is recorded is played, all of it."""
SENDS, MOVES = Work(WorkKind.SEND_FORWARD, 0), Work(WorkKind.REDUCE, 0)


def enlarged(costs: Sequence[WorkCost], factor: float) -> list[WorkCost]:
    """Return costs whose collectives and transfers have `factor` times the bytes."""

    def larger(phase: CommPhase) -> CommPhase:
        return replace(phase, wire_bytes=phase.wire_bytes * factor)

    def longer(plan: CommPlan) -> CommPlan:
        return replace(plan, phases=tuple(map(larger, plan.phases)))

    found = [replace(cost, plans=tuple(map(longer, cost.plans))) for cost in costs]
    return [
        replace(cost, seconds=sum(plan.seconds for plan in cost.plans)) if cost.plans else cost
        for cost in found
    ]


def played_and_ahead(
    step: Step, factor: float, slowdown: Sequence[float], interference: Interference | None
) -> list[EngineRun]:
    """Return the run in which all flows are played, and the one that looks ahead."""
    costs = enlarged(step.costs, factor)
    return [
        run_step(step.graph, costs, CAPACITY, slowdown, interference, fabric=fabric)
        for fabric in (PLAYED, None)
    ]


@given(
    setup=setups(),
    domain=st.sampled_from([1, 2, 8]),
    factor=st.floats(-2, 3).map(lambda power: 10**power),
    slowdown=st.lists(st.floats(1.0, 2.0), min_size=4, max_size=4),
    slows=st.none() | st.floats(1.0, 2.0),
)
def test_looking_ahead_changes_no_time(
    setup: Setup, domain: int, factor: float, slowdown: list[float], slows: float | None
) -> None:
    step = step_of(setup.layout, setup.forecaster(domain))
    interference = (
        None
        if slows is None
        else Interference(compute=(slows,) * len(step.costs), communication=1.5)
    )
    played, ahead = played_and_ahead(step, factor, slowdown[: setup.layout.pp], interference)
    length = played.step_time
    assert np.allclose(ahead.start, played.start, rtol=0, atol=1e-9 * length)
    assert np.allclose(ahead.end, played.end, rtol=0, atol=1e-9 * length)


@given(
    setup=setups(),
    factor=st.floats(-2, 3).map(lambda power: 10**power),
    paces=st.lists(st.floats(1.0, 2.0), min_size=2, max_size=3),
    slows=st.none() | st.floats(1.0, 2.0),
)
def test_nor_does_it_where_replicas_differ_and_meet(
    setup: Setup, factor: float, paces: list[float], slows: float | None
) -> None:
    step = step_of(setup.layout, setup.forecaster(1))
    costs, count = enlarged(step.costs, factor), len(paces)
    works = (1.0 if slows is None else slows,) * len(costs)
    replicas = Replicas(
        count=count,
        slowdown=[(pace,) * setup.layout.pp for pace in paces],
        meeting=dict.fromkeys((WorkKind.GATHER, WorkKind.REDUCE, WorkKind.JOIN), count),
    )
    interference = None if slows is None else Interference(compute=works, communication=1.5)
    played, ahead = (
        run_step(
            step.graph,
            costs,
            CAPACITY,
            interference=interference,
            fabric=fabric,
            replicas=replicas,
        )
        for fabric in (PLAYED, None)
    )
    length = played.step_time
    assert np.allclose(ahead.ends, played.ends, rtol=0, atol=1e-9 * length)
    assert np.allclose(ahead.waited, played.waited, rtol=0, atol=1e-9 * length)


def pipeline(zero_stage: int, *, overlaps: bool) -> Step:
    """Two stages that send, and reduce gradients over the same links: at once, or in turn."""
    layout = ParallelLayout(pp=2, dp=4, zero_stage=zero_stage)
    stack = fake_stack(overlap={"pipeline_send": overlaps, "gradient_reduce": overlaps})
    job = tiny_job(global_batch_size=4 * 8)
    return step_of(layout, forecaster(layout, stack=stack, job=job))


def runs(step: Step) -> list[EngineRun]:
    return played_and_ahead(step, 1.0, (1.0, 1.0), None)


def test_only_flows_that_may_meet_another_are_played() -> None:
    """Gradients are sent back while those of weights are reduced; all else meets nothing."""
    step = pipeline(2, overlaps=True)
    played, ahead = runs(step)
    kinds = Counter(step.graph.works[work].kind for work in step.graph.work)
    alone = kinds[WorkKind.SEND_FORWARD] + kinds[WorkKind.GATHER_CHUNK]
    assert alone == 8 + 2
    assert played.played - ahead.played == alone


def test_a_step_whose_flows_never_meet_is_the_estimate_and_takes_no_event() -> None:
    step = pipeline(0, overlaps=False)
    played, ahead = runs(step)
    # 8 micro-batches there and back, and one reduction on each stage.
    assert (played.played, ahead.played, ahead.events) == (2 * 8 + 2, 0, 0)
    assert ahead.end == pytest.approx(step.timing().end, rel=1e-12)


def test_kernels_that_no_collective_runs_beside_are_not_played() -> None:
    """On one stage the collective comes after the last pass: nothing slows anything."""
    step = step_of(ParallelLayout(dp=4, schedule=ScheduleName.GPIPE))
    slow = Interference(compute=(2.0,) * len(step.costs), communication=2.0)
    run = run_step(step.graph, step.costs, CAPACITY, interference=slow)
    assert run.played == 0
    assert run.end == pytest.approx(step.timing().end, rel=1e-12)


def two_streams(*works: Work) -> TaskGraph:
    """Return tasks on the send and data streams of one stage that wait for nothing."""
    lanes = {SENDS: STREAMS * 0 + StreamKind.SEND, MOVES: STREAMS * 0 + StreamKind.DATA}
    return TaskGraph(
        works=(SENDS, MOVES),
        work=tuple((SENDS, MOVES).index(work) for work in works),
        stream=tuple(lanes[work] for work in works),
        first=(NO_TASK,) * len(works),
        second=(NO_TASK,) * len(works),
        micro_batch=(0,) * len(works),
        pp=1,
    )


@pytest.mark.parametrize(
    ("shared", "moment"),
    [
        # Sends from 0 to 2 and 3 to 5, reductions from 2 to 3 and 4 to 6: the last two overlap.
        ({0: {"nic"}, 1: {"nic"}}, 4.0),
        ({0: {"nic"}, 1: {"scale-up", "nic"}}, 4.0),
        ({0: {"nic"}, 1: {"scale-up"}}, math.inf),
        ({0: {"nic"}}, math.inf),
    ],
)
def test_flows_that_follow_each_other_on_a_link_do_not_meet(
    shared: dict[int, set[str]], moment: float
) -> None:
    graph = two_streams(SENDS, MOVES, SENDS, MOVES)
    start, end = np.array([0.0, 2.0, 3.0, 4.0]), np.array([2.0, 3.0, 5.0, 6.0])
    assert first_meeting(graph, shared, start, end) == moment
