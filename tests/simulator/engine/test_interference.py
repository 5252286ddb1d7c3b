"""Compute beside communication in the engine: rates by hand, properties on whole steps."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import pytest
import simpy
from hypothesis import assume, given
from hypothesis import strategies as st

from simulator.engine.gpu import Gpu
from simulator.engine.network import Network
from simulator.parallel.layout import ParallelLayout
from simulator.results import StepResult
from simulator.workload.stack_choices import KernelClass
from tests.fakes import changed, fake_stack
from tests.simulator.steps import forecaster, may_share_a_link, step_of
from tests.simulator.strategies import Setup, setups

Process = Generator[simpy.Event, None, None]


def ends(k: float, m: float, compute: float, comm: float, *, late: float = 0.0) -> list[float]:
    """Return when a kernel and, started `late`, a collective on a private link have run."""
    env = simpy.Environment()
    gpu = Gpu(env, Network(env, {}), m)
    found = [0.0, 0.0]

    def kernel() -> Process:
        yield from gpu.compute(compute, k)
        found[0] = env.now

    def collective() -> Process:
        yield env.timeout(late)
        with gpu.communicating():
            yield from gpu.delay(comm)
        found[1] = env.now

    env.process(kernel())
    env.process(collective())
    env.run()
    return found


def test_a_collective_slows_the_kernel_only_while_it_runs() -> None:
    # 4 s of collective take 6 s, in which the kernel does 3 of its 10 s; 7 s are left.
    assert ends(2.0, 1.5, 10.0, 4.0) == [13.0, 6.0]


def test_a_kernel_slows_the_collective_only_while_it_runs() -> None:
    # 3 s of kernel take 6 s, in which the collective does 4 of its 10 s; 6 s are left.
    assert ends(2.0, 1.5, 3.0, 10.0) == [6.0, 12.0]


def test_a_collective_that_comes_late_meets_what_is_left() -> None:
    # 6 of 10 s are done; the other 4 take 8 s, in which the collective does 8 of its 9 s.
    assert ends(2.0, 1.0, 10.0, 9.0, late=6.0) == [14.0, 15.0]


def test_a_flow_on_a_shared_link_is_throttled() -> None:
    env = simpy.Environment()
    network = Network(env, {"link": 10.0})
    gpu = Gpu(env, network, 2.0)
    found = []

    def collective() -> Process:
        with gpu.communicating():
            yield from gpu.transfer(("link",), 100.0, 10.0)
        found.append(env.now)

    def kernel() -> Process:
        yield env.timeout(2.0)
        yield from gpu.compute(4.0, 1.0)

    env.process(collective())
    env.process(kernel())
    env.run()
    # 2 s at 10 bytes/s, 4 s at 5, and the last 60 bytes at 10 again.
    assert found == [12.0]


OVERLAP = {"gradient_reduce": True, "parameter_gather": True, "pipeline_send": True}
LAYOUTS = [
    ParallelLayout(dp=8),
    ParallelLayout(dp=8, zero_stage=3),
    ParallelLayout(pp=4, dp=2),
    ParallelLayout(pp=2, dp=4, vpp=2, zero_stage=1),
]


def simulated(layout: ParallelLayout, k: float, m: float) -> StepResult:
    slowdown = dict.fromkeys(KernelClass, k)
    stack = fake_stack(
        overlap={**OVERLAP, "compute_slowdown": slowdown, "comm_slowdown": m}, bucket_parameters=1
    )
    return forecaster(layout, stack=stack).simulate(layout, spans=False)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_interference_lengthens_a_step_that_overlaps(layout: ParallelLayout) -> None:
    alone = simulated(layout, 1.0, 1.0).step_time
    assert alone < simulated(layout, 1.5, 1.5).step_time <= 1.5 * alone
    assert alone <= simulated(layout, 1.5, 1.0).step_time <= 1.5 * alone
    assert alone <= simulated(layout, 1.0, 1.5).step_time <= 1.5 * alone


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_the_breakdown_adds_up_under_interference(layout: ParallelLayout) -> None:
    result = simulated(layout, 1.4, 1.3)
    assert sum(result.breakdown.seconds.values()) == pytest.approx(result.step_time)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_no_interference_costs_no_event(layout: ParallelLayout) -> None:
    plain = forecaster(layout, stack=fake_stack(overlap=OVERLAP, bucket_parameters=1))
    named = simulated(layout, 1.0, 1.0)
    assert named.events == plain.simulate(layout, spans=False).events


@given(setups(), st.floats(1.0, 2.0), st.floats(1.0, 2.0))
def test_a_step_lies_between_itself_alone_and_all_of_it_slowed(
    setup: Setup, k: float, m: float
) -> None:
    # Where flows share a link a later one can leave room for one that is waited for.
    alone = setup.forecaster(8)
    assume(not may_share_a_link(step_of(setup.layout, alone)))
    overlap = {"compute_slowdown": dict.fromkeys(KernelClass, k), "comm_slowdown": m}
    stack = changed(setup.stack, overlap=changed(setup.stack.overlap, **overlap))
    slowed = replace(setup, stack=stack).forecaster(8)
    first, second = (cast.simulate(setup.layout, spans=False).step_time for cast in (alone, slowed))
    # Compute that hides collectives of its own layer beside those of other streams: k twice.
    assert first * (1 - 1e-9) <= second <= first * max(k, m) ** 2 * (1 + 1e-9)
