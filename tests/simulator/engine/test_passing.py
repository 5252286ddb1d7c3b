"""Collectives inside passes on shared links: alone as estimated, together by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.api import Forecaster
from simulator.conditions import Conditions
from simulator.cost.blocks import PieceCost
from simulator.cost.interference import exposed_seconds
from simulator.cost.network.bursts import bursts_of, merged
from simulator.cost.network.groups import Together
from simulator.cost.network.network import Network
from simulator.cost.network.passes import pass_flows
from simulator.cost.network.routed import limited_costs, route_costs
from simulator.cost.plan import Burst, CommPhase, CommPlan, LinkKind, Load
from simulator.cost.priced import WorkCost
from simulator.engine.fabric import Background, Fabric
from simulator.engine.gpu import Interference
from simulator.engine.step import EngineRun, run_step
from simulator.estimate import estimate_step_time
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import Axis, ParallelLayout, ScheduleName
from simulator.parallel.work import CommWork
from simulator.results import Category, StepResult
from simulator.schedule.graph import build_graph
from simulator.schedule.tasks import TaskGraph, WorkKind
from tests.fakes import fake_node, fake_profile, fake_stack, tiny_job, tiny_model
from tests.simulator.cost.network.networks import FLAT, network_on
from tests.simulator.steps import CAPACITY, bare_shape, step_of
from tests.simulator.strategies import Setup, setups

EVERYTHING = 10_000
SHARED = Load(links=(0,), weights=(1.0,))


def network_of(cast: Forecaster) -> Network:
    """Return a flat network of nodes of the forecaster's machine."""
    return network_on(cast.profile, FLAT, cast.world_size // cast.profile.node.accelerators)


@given(setups())
@settings(max_examples=15)
def test_with_room_for_all_a_step_takes_its_estimate(setup: Setup) -> None:
    """Every rank is a node, so that tp, cp and ep all send; no link is narrower than all of it."""
    cast = setup.forecaster(1)
    network = network_of(cast)
    cast = cast.under(Conditions(network=network))
    step = step_of(setup.layout, cast)
    program, works = step.program, step.graph.works
    routed = route_costs(
        network,
        program,
        step.graph,
        [cast.costs.alone(program, works)],
        inside=pass_flows(cast.costs, program, works),
        watched=EVERYTHING,
    )
    roomy = Fabric(capacity=tuple(1000 * routed.classes.capacity), record=True)
    run = run_step(step.graph, routed.costs[0], CAPACITY, fabric=roomy)
    expected = limited_costs(network, program, works, cast.costs.alone(program, works))
    assert run.step_time == pytest.approx(estimate_step_time(step.graph, expected), rel=1e-9)
    sends = any(cost.bursts for cost in routed.costs[0])
    assert sends == (setup.layout.tp * setup.layout.cp * setup.layout.ep > 1)


TWO_BY_TWO = ParallelLayout(tp=2, dp=2)


def sending(*bursts: Burst, seconds: float, turns: int = 1) -> WorkCost:
    """Return a pass of `seconds`, in which it sends."""
    return WorkCost(
        seconds=seconds, by_category={Category.GEMM: seconds}, bursts=bursts, turns=turns
    )


def burst(size: float, *, rate: float = 50.0, beside: float = 0.0) -> Burst:
    phase = CommPhase(link=LinkKind.SCALE_OUT, fixed=0.0, wire_bytes=size, rate=rate, over=SHARED)
    return Burst(category=Category.EXPERT_COMM, phase=phase, beside=beside)


def one_stage() -> TaskGraph:
    return build_graph(bare_shape(ScheduleName.ONE_F_ONE_B, 1, 1, 1))


def forward_only(
    cost: WorkCost, demand: float, interference: Interference | None = None
) -> EngineRun:
    """Return a step of one forward pass beside traffic of others on a link of 50 bytes/s."""
    graph = one_stage()
    nothing = WorkCost(seconds=0.0, by_category={})
    costs = [cost if work.kind is WorkKind.FORWARD else nothing for work in graph.works]
    others = (Background(load=SHARED, demand=demand),) if demand else ()
    fabric = Fabric(capacity=(50.0,), background=others, record=True)
    return run_step(graph, costs, CAPACITY, interference=interference, fabric=fabric)


@pytest.mark.parametrize(
    ("cost", "alone", "shared"),
    [
        # 3 s of compute, then 100 bytes at 50 bytes/s; beside others at 25.
        (sending(burst(100.0), seconds=5.0), 5.0, 7.0),
        # The same layer by layer: halves of 1.5 s and 50 bytes.
        (sending(burst(100.0), seconds=5.0, turns=2), 5.0, 7.0),
        # Behind 3 s of compute, which hide one of the two seconds more that it takes.
        (sending(burst(100.0, beside=3.0), seconds=3.0), 3.0, 4.0),
        # Behind 5 s of compute nothing is seen of it.
        (sending(burst(100.0, beside=5.0), seconds=6.0), 6.0, 6.0),
    ],
)
def test_a_pass_waits_for_what_it_cannot_hide(cost: WorkCost, alone: float, shared: float) -> None:
    found = [forward_only(cost, demand).step_time for demand in (0.0, 1000.0)]
    assert found == pytest.approx([alone, shared])


def test_passes_alternate_a_few_times_whatever_their_layers() -> None:
    counts = [
        forward_only(sending(burst(100.0), seconds=5.0, turns=turns), 0.0).events
        for turns in (1, 4, 5, 400)
    ]
    assert counts == [counts[0], counts[0] + 3 * 2, counts[1], counts[1]]


def test_on_a_gpu_that_nothing_slows_a_pass_takes_as_long() -> None:
    interference = Interference(compute=(1.5,) * 9, communication=1.2)
    cost = sending(burst(100.0), burst(50.0, beside=2.0), seconds=9.0, turns=3)
    assert forward_only(cost, 0.0, interference).step_time == pytest.approx(9.0)


def test_bursts_of_one_kind_add_up_and_others_stay_apart() -> None:
    slow, fast, hidden = burst(100.0, rate=20.0), burst(100.0), burst(50.0, beside=2.0)
    found = merged([slow, fast, hidden])
    # 5 s and 2 s are 200 bytes in 7 s.
    assert [(each.phase.wire_bytes, each.seconds) for each in found] == [(200.0, 7.0), (50.0, 2.0)]


def reduced_meanwhile(*, overlap: bool) -> tuple[float, StepResult]:
    """Return estimate and played step of tp = 2 and dp = 2 on nodes of one accelerator.

    With overlap the gradients of each layer are reduced while those before it pass backward.
    """
    stack = fake_stack(overlap={"gradient_reduce": overlap}, bucket_parameters=1)
    profile = fake_profile(node=fake_node(domain_size=1, accelerators=1))
    cast = Forecaster(tiny_model(), tiny_job(), stack, profile, TWO_BY_TWO.world_size)
    cast = cast.under(Conditions(network=network_of(cast)))
    return cast.estimate(TWO_BY_TWO).step_time, cast.simulate(TWO_BY_TWO)


def test_tensor_traffic_in_a_pass_meets_gradients_on_the_nics() -> None:
    estimate, result = reduced_meanwhile(overlap=True)
    assert result.step_time > estimate * 1.01
    assert result.breakdown.total == pytest.approx(result.step_time)


def test_gradients_that_wait_for_the_last_pass_meet_nothing() -> None:
    estimate, result = reduced_meanwhile(overlap=False)
    assert result.step_time == pytest.approx(estimate, rel=1e-9)


FRACTIONS, SLOWDOWNS = st.just(0.0) | st.floats(0.01, 1.0), st.floats(1.0, 2.0)


@given(st.floats(0.1, 10.0), st.floats(0.1, 10.0), FRACTIONS, SLOWDOWNS, SLOWDOWNS)
def test_bursts_of_a_collective_fill_what_it_and_its_compute_take_together(
    seconds: float, window: float, share: float, k: float, m: float
) -> None:
    """Also where the two slow each other: exposed + share x window, and all of its bytes."""
    phase = CommPhase(
        link=LinkKind.SCALE_OUT,
        fixed=0.25 * seconds,
        wire_bytes=60.0,
        rate=60.0 / (0.75 * seconds),
    )
    group = GroupShape(size=2, per_domain=1, stride=1)
    comm = CommWork(
        name="hop",
        collective=Collective.SEND_RECV,
        payload=60.0,
        axis=Axis.CONTEXT,
        group=group,
        hidden_by=("core",),
        hidden_fraction=share,
    )
    plan = CommPlan(
        collective=comm.collective, algorithm="direct", payload=60.0, group=group, phases=(phase,)
    )
    exposed = exposed_seconds(seconds, window, share, k, m)
    priced = PieceCost(
        name="hop", category=Category.CONTEXT_COMM, offset=0.0, seconds=seconds, exposed=exposed
    )
    groups = Together(stage=0, size=2, stride=1)
    (flow,) = bursts_of(plan, comm, priced, groups, window)
    # Latencies of what is not hidden are left with the compute of the pass.
    waited = (1 - share) * phase.fixed
    assert sum(each.seconds for each in flow.bursts) == pytest.approx(
        exposed + share * window - waited
    )
    assert sum(each.phase.wire_bytes for each in flow.bursts) == pytest.approx(60.0)
