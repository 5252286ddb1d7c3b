"""Replicas that differ: what the others wait for by hand, and equal ones as one."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.plan import CommPhase, CommPlan, LinkKind
from simulator.cost.priced import WorkCost
from simulator.engine.gpu import Gpu, Team
from simulator.engine.network import Network
from simulator.engine.replicas import Replicas
from simulator.engine.step import EngineRun, run_step
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import ScheduleName
from simulator.results import Category
from simulator.schedule.graph import build_graph
from simulator.schedule.tasks import Sync, TaskGraph, WorkKind
from tests.simulator.steps import CAPACITY, bare_shape, step_of
from tests.simulator.strategies import Setup, setups

Process = Generator[simpy.Event, None, None]
SECONDS = {WorkKind.FORWARD: 1.0, WorkKind.BACKWARD: 2.0, WorkKind.OPTIMIZER: 1.0}
REPLICAS = 4
ALL = {WorkKind.REDUCE: REPLICAS, WorkKind.JOIN: REPLICAS}
DATA = (
    WorkKind.GATHER,
    WorkKind.REDUCE,
    WorkKind.GATHER_CHUNK,
    WorkKind.BROADCAST,
    WorkKind.AVERAGE,
    WorkKind.JOIN,
)
"""What all replicas do together in a step that synchronises."""


def one_pass() -> TaskGraph:
    """Return one forward and one backward pass, a reduction, and the update."""
    shape = bare_shape(ScheduleName.ONE_F_ONE_B, 1, 1, 1)
    return build_graph(replace(shape, sync=Sync.AFTER))


def reduction() -> WorkCost:
    """Return a collective of 3 s: 1 s, then 100 bytes at 50 bytes/s."""
    phase = CommPhase(link=LinkKind.SCALE_OUT, fixed=1.0, wire_bytes=100.0, rate=50.0)
    plan = CommPlan(
        collective=Collective.ALL_REDUCE,
        algorithm="ring",
        payload=100.0,
        group=GroupShape(size=REPLICAS, per_domain=1),
        phases=(phase,),
    )
    return WorkCost(seconds=plan.seconds, by_category={}, plans=(plan,))


def costs_of(graph: TaskGraph) -> list[WorkCost]:
    def cost(kind: WorkKind) -> WorkCost:
        if kind is WorkKind.REDUCE:
            return reduction()
        seconds = SECONDS.get(kind, 0.0)
        return WorkCost(seconds=seconds, by_category={Category.GEMM: seconds})

    return [cost(work.kind) for work in graph.works]


def played(
    slowdown: Sequence[float],
    meeting: Mapping[WorkKind, int],
    jitter: Sequence[Sequence[float]] | None = None,
) -> EngineRun:
    graph = one_pass()
    replicas = Replicas(
        count=len(slowdown),
        slowdown=[(factor,) for factor in slowdown],
        meeting=meeting,
        jitter=None if jitter is None else np.array(jitter),
    )
    return run_step(graph, costs_of(graph), CAPACITY, replicas=replicas)


def test_one_slow_replica_delays_all_others() -> None:
    run = played([1.0, 1.0, 1.0, 2.0], ALL)
    # All reduce from 6, when the slow one has computed, to 9; it then updates for 2 s, others 1 s.
    assert [max(ends) for ends in run.ends] == [10.0, 10.0, 10.0, 11.0]
    assert run.waited == [[3.0], [3.0], [3.0], [0.0]]
    assert (run.pace, run.step_time) == (3, 11.0)


def test_replicas_that_do_not_meet_do_not_wait() -> None:
    run = played([1.0, 2.0], {})
    assert [max(ends) for ends in run.ends] == [7.0, 11.0]
    assert run.waited == [[0.0], [0.0]]


def test_the_gradient_norm_waits_for_groups_that_reduce_apart() -> None:
    run = played([1.0, 1.0, 1.0, 2.0], {WorkKind.REDUCE: 2, WorkKind.JOIN: 4})
    # The first two reduce from 3 to 6 and wait until 9; of the others one waits from 3 to 6.
    assert run.waited == [[3.0], [3.0], [3.0], [0.0]]
    assert [max(ends) for ends in run.ends] == [10.0, 10.0, 10.0, 11.0]


def test_jitter_multiplies_compute_and_no_collective() -> None:
    run = played([1.0, 3.0], {}, [[2.0] * 5, [0.5] * 5])
    # (1 + 2 + 1) s of compute and 3 s of collective.
    assert [max(ends) for ends in run.ends] == [2.0 * 4 + 3, 1.5 * 4 + 3]


def test_a_meeting_loads_the_links_of_all_who_meet() -> None:
    run = played([1.0] * REPLICAS, ALL)
    assert run.carried == {(row, LinkKind.SCALE_OUT): 100.0 for row in range(REPLICAS)}


def test_slow_stages_and_replicas_multiply() -> None:
    shape = bare_shape(ScheduleName.ONE_F_ONE_B, 2, 1, 1)
    graph = build_graph(shape)
    replicas = Replicas(count=2, slowdown=[(1.0, 2.0), (3.0, 1.0)])
    run = run_step(graph, costs_of(graph), CAPACITY, replicas=replicas)
    # Forward 1 s on both stages, backward 2 s on both, and an update of each.
    assert [max(ends) for ends in run.ends] == [1 + 2 + 4 + 2 + 2, 3 + 1 + 2 + 6 + 3]


@given(setups(), st.integers(2, 4))
def test_equal_replicas_end_when_a_single_one_does(setup: Setup, count: int) -> None:
    step = step_of(setup.layout, setup.forecaster(8))
    alone = step.play()
    replicas = Replicas(
        count=count,
        slowdown=[(1.0,) * step.graph.pp] * count,
        meeting=dict.fromkeys(DATA, count),
    )
    run = run_step(step.graph, step.costs, CAPACITY, replicas=replicas)
    for ends in run.ends:
        assert ends == pytest.approx(alone.end, rel=1e-9)
    assert max(max(stages) for stages in run.waited) <= 1e-9 * alone.step_time


@given(setups(pipelined=False), st.lists(st.floats(1.0, 3.0), min_size=2, max_size=4))
def test_replicas_of_one_stage_take_what_all_at_the_pace_of_the_slowest_would(
    setup: Setup, factors: list[float]
) -> None:
    step = step_of(setup.layout, setup.forecaster(8))
    count = len(factors)
    rows = [(factor,) * step.graph.pp for factor in factors]
    replicas = Replicas(count=count, slowdown=rows, meeting=dict.fromkeys(DATA, count))
    run = run_step(step.graph, step.costs, CAPACITY, replicas=replicas)
    slowest = run_step(step.graph, step.costs, CAPACITY, (max(factors),) * step.graph.pp)
    assert run.step_time == pytest.approx(slowest.step_time, rel=1e-9)


def test_a_meeting_is_slow_while_any_of_its_gpus_computes() -> None:
    env = simpy.Environment()
    network = Network(env, {})
    gpus = [Gpu(env, network, 2.0) for _ in range(3)]
    found: dict[str, float] = {}

    def kernel(gpu: Gpu, name: str, start: float, seconds: float) -> Process:
        yield env.timeout(start)
        yield from gpu.compute(seconds, 1.5)
        found[name] = env.now

    def collective() -> Process:
        team = Team(gpus[:2])
        with team.communicating():
            yield from team.delay(5.0)
        found["collective"] = env.now

    for number, (start, seconds) in enumerate([(0.0, 2.0), (1.0, 2.0), (0.0, 9.0)]):
        env.process(kernel(gpus[number], f"kernel {number}", start, seconds))
    env.process(collective())
    env.run()
    # Kernels of its two GPUs take 1.5 x 2 s, from 0 to 3 and from 1 to 4: in 4 s it does 2 s.
    assert found == {"kernel 0": 3.0, "kernel 1": 4.0, "kernel 2": 9.0, "collective": 7.0}


def test_a_flow_of_a_meeting_is_throttled_while_any_of_its_gpus_computes() -> None:
    env = simpy.Environment()
    network = Network(env, {"link": 10.0})
    gpus = [Gpu(env, network, 2.0) for _ in range(2)]

    def kernel() -> Process:
        yield env.timeout(2.0)
        yield from gpus[1].compute(4.0, 1.0)

    def collective() -> Process:
        team = Team(gpus)
        with team.communicating():
            yield from team.transfer(("link",), 100.0, 10.0)
        assert env.now == 12.0

    env.process(kernel())
    done = env.process(collective())
    env.run()
    # 2 s at 10 bytes/s, 4 s at 5, and the last 60 bytes at 10 again.
    assert done.ok
