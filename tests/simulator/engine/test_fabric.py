"""A network behind the ranks in a whole step: stages that share it, by hand and as properties."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.cost.plan import CommPhase, CommPlan, LinkKind, Load
from simulator.cost.priced import WorkCost
from simulator.engine.fabric import Background, Fabric
from simulator.engine.record import Utilisation
from simulator.engine.step import EngineRun, run_step
from simulator.estimate import estimate_step_time
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import ScheduleName
from simulator.schedule.graph import build_graph
from simulator.schedule.tasks import Sync, TaskGraph, WorkKind
from tests.simulator.steps import CAPACITY, bare_shape, step_of
from tests.simulator.strategies import Setup, setups

CLASSES = 3


def two_stages() -> TaskGraph:
    """Return two stages, each of which reduces its gradients after its last pass."""
    shape = bare_shape(ScheduleName.ONE_F_ONE_B, 2, 1, 1)
    return build_graph(replace(shape, sync=Sync.AFTER))


def reduction(load: Load) -> WorkCost:
    """Return a collective that moves 100 bytes at 50 bytes/s: 2 s alone."""
    phase = CommPhase(link=LinkKind.SCALE_OUT, fixed=0.0, wire_bytes=100.0, rate=50.0, over=load)
    plan = CommPlan(
        collective=Collective.ALL_REDUCE,
        algorithm="ring",
        payload=100.0,
        group=GroupShape(size=2, per_domain=1),
        phases=(phase,),
    )
    return WorkCost(seconds=plan.seconds, by_category={}, plans=(plan,))


def reduced(loads: Sequence[Load], fabric: Fabric) -> EngineRun:
    """Return the step in which only reductions take time; they start together."""
    graph = two_stages()
    nothing = WorkCost(seconds=0.0, by_category={})
    costs = [
        reduction(loads[work.stage]) if work.kind is WorkKind.REDUCE else nothing
        for work in graph.works
    ]
    return run_step(graph, costs, CAPACITY, fabric=fabric)


ONE, HALF, OTHER = (
    Load(links=(0,), weights=(1.0,)),
    Load(links=(0,), weights=(0.5,)),
    Load(links=(1,), weights=(1.0,)),
)


@pytest.mark.parametrize(
    ("loads", "capacity", "seconds"),
    [
        # Stages on links of their own.
        ([ONE, OTHER], (50.0, 50.0), 2.0),
        # Both on one that carries one of them.
        ([ONE, ONE], (50.0, 50.0), 4.0),
        # r + r / 2 = 60: 40 bytes/s until both are done.
        ([ONE, HALF], (60.0, 50.0), 2.5),
        # On one that carries both at once.
        ([ONE, ONE], (100.0, 50.0), 2.0),
    ],
)
def test_stages_share_the_classes_of_links_that_they_load(
    loads: list[Load], capacity: tuple[float, ...], seconds: float
) -> None:
    assert reduced(loads, Fabric(capacity=capacity)).step_time == pytest.approx(seconds)


def test_a_link_that_carries_all_at_once_costs_no_event() -> None:
    apart = reduced([ONE, OTHER], Fabric(capacity=(50.0, 50.0)))
    assert reduced([ONE, ONE], Fabric(capacity=(100.0, 50.0))).events == apart.events


def test_a_class_carries_what_all_stages_put_on_it() -> None:
    assert reduced([ONE, HALF], Fabric(capacity=(60.0,))).carried == {0: 150.0}


def test_background_on_a_class_takes_its_part() -> None:
    # Two flows of the step and one beside it: 20 bytes/s each.
    others = Background(load=ONE, demand=60.0)
    fabric = Fabric(capacity=(60.0,), background=(others,))
    assert reduced([ONE, ONE], fabric).step_time == pytest.approx(5.0)


def test_background_that_comes_and_goes_ends_with_the_step() -> None:
    # On for 1 s of 4, in which each gets a third of 60: 20 bytes in 1 s, then 30 a second.
    others = Background(load=ONE, demand=60.0, period=4.0, duty=0.25)
    fabric = Fabric(capacity=(60.0,), background=(others,))
    assert reduced([ONE, ONE], fabric).step_time == pytest.approx(1 + 80 / 30)


def test_the_load_of_a_class_is_recorded_over_time() -> None:
    # 40 + 20 bytes/s on the first until both are done at 2.5 s.
    run = reduced([ONE, HALF], Fabric(capacity=(60.0,), record=True))
    assert run.utilisation == {0: Utilisation(times=(0.0, 2.5), rates=(60.0,))}


def routed(costs: Sequence[WorkCost], weights: Sequence[Sequence[float]]) -> list[WorkCost]:
    """Return the works of a step over a network: work i loads every class by `weights[i]`."""
    links = tuple(range(CLASSES))

    def over(plan: CommPlan, load: Load) -> CommPlan:
        return replace(plan, phases=tuple(replace(phase, over=load) for phase in plan.phases))

    return [
        replace(
            cost,
            plans=tuple(
                over(plan, Load(links=links, weights=tuple(weights[i % len(weights)])))
                for plan in cost.plans
            ),
        )
        for i, cost in enumerate(costs)
    ]


def fullest(costs: Sequence[WorkCost]) -> list[float]:
    """Return the capacities at which every flow alone has its rate."""
    capacity = [1.0] * CLASSES
    for cost in costs:
        for plan in cost.plans:
            for phase in plan.phases:
                assert phase.over is not None
                for link, weight in zip(phase.over.links, phase.over.weights, strict=True):
                    capacity[link] = max(capacity[link], weight * phase.rate)
    return capacity


WEIGHTS = st.lists(st.tuples(*[st.floats(0.01, 10.0)] * CLASSES).map(list), min_size=1, max_size=4)


@given(setups(), WEIGHTS)
def test_contention_never_makes_a_step_faster(setup: Setup, weights: list[list[float]]) -> None:
    step = step_of(setup.layout, setup.forecaster(8))
    costs = routed(step.costs, weights)
    run = run_step(step.graph, costs, CAPACITY, fabric=Fabric(capacity=fullest(costs)))
    assert run.step_time >= estimate_step_time(step.graph, step.costs) * (1 - 1e-9)


@given(setups(), WEIGHTS)
def test_recording_changes_no_time_and_misses_no_byte(
    setup: Setup, weights: list[list[float]]
) -> None:
    step = step_of(setup.layout, setup.forecaster(8))
    costs = routed(step.costs, weights)
    fabric = Fabric(capacity=fullest(costs))
    plain = run_step(step.graph, costs, CAPACITY, fabric=fabric)
    recorded = run_step(step.graph, costs, CAPACITY, fabric=replace(fabric, record=True))
    assert recorded.end == pytest.approx(plain.end, rel=1e-9)
    carried = {link: size for link, size in plain.carried.items() if size}
    found = {link: use.bytes for link, use in recorded.utilisation.items()}
    assert found == pytest.approx(carried, rel=1e-6)


@given(setups(), WEIGHTS)
def test_a_network_with_room_for_all_is_the_estimate(
    setup: Setup, weights: list[list[float]]
) -> None:
    step = step_of(setup.layout, setup.forecaster(8))
    costs = routed(step.costs, weights)
    streams = len(set(step.graph.stream))
    roomy = [rate * streams for rate in fullest(costs)]
    run = run_step(step.graph, costs, CAPACITY, fabric=Fabric(capacity=roomy))
    assert run.step_time == pytest.approx(estimate_step_time(step.graph, step.costs), rel=1e-9)
