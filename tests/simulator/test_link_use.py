"""What links carry over a step is what was recorded of them, until the step ends."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.conditions import Conditions
from simulator.link_use import link_utilisation
from simulator.parallel.layout import ParallelLayout
from simulator.results import LinkUse, StepResult
from simulator.topology.network_file import BackgroundTraffic, JitterFile
from tests.fakes import NIC, fake_node, fake_profile
from tests.simulator.cost.network.networks import FLAT, network_on
from tests.simulator.steps import forecaster

ONE_A_NODE = fake_profile(node=fake_node(domain_size=1, accelerators=1))
REPLICAS = ParallelLayout(dp=4)
NETWORK = network_on(ONE_A_NODE, FLAT, 4)


def simulated(conditions: Conditions) -> StepResult:
    """Return a step of four replicas, one a node, under some conditions."""
    return forecaster(REPLICAS, profile=ONE_A_NODE).under(conditions).simulate(REPLICAS)


def carried(use: LinkUse) -> float:
    """Return the bytes under the curve of a link."""
    assert use.load is not None
    return float(np.dot(np.diff(use.load.times), use.load.rates))


def test_the_curve_of_a_link_carries_what_the_link_does() -> None:
    links = simulated(Conditions(network=NETWORK)).links
    assert links
    assert [carried(use) for use in links] == pytest.approx([use.carried for use in links])


def test_traffic_of_others_is_in_the_curve_until_the_step_ends() -> None:
    alone = simulated(Conditions(network=NETWORK))
    rate = NIC / 10
    period = alone.step_time * 10
    others = BackgroundTraffic(source=(0,), target=(1,), bandwidth=rate, period=period, duty=0.9)
    result = simulated(Conditions(network=NETWORK, background=(others,)))
    loaded = [use.load for use in result.links if use.name == "node0/nic0 -> switch" and use.load]
    (load,) = loaded
    assert load.times[-1] == pytest.approx(result.step_time)
    assert min(load.rates) == pytest.approx(rate)


def test_a_step_that_draws_its_times_is_full_for_its_own_length() -> None:
    jitter = JitterFile(deviation=0.5, steps=2, seed=1)
    result = simulated(Conditions(network=NETWORK, jitter=jitter))
    use = result.links[0]
    assert use.load is not None
    full = np.asarray(use.load.rates) >= 0.999 * use.capacity
    seconds = float(np.diff(use.load.times)[full].sum())
    assert use.full == pytest.approx(seconds / result.drawn[-1])
    assert result.drawn[-1] != pytest.approx(result.step_time)


def test_without_a_timeline_nothing_is_recorded() -> None:
    cast = forecaster(REPLICAS, profile=ONE_A_NODE).under(Conditions(network=NETWORK))
    links = cast.simulate(REPLICAS, spans=False).links
    assert {(use.load, use.full) for use in links} == {(None, None)}


def test_utilisation_is_what_each_link_carries_over_what_it_could() -> None:
    topology = NETWORK.topology
    up, down = topology.first_up + 1, topology.first_down
    uses = [
        LinkUse(name="up", links=(up,), capacity=10.0, carried=30.0, full=None),
        LinkUse(name="down", links=(down, down + 1), capacity=20.0, carried=15.0, full=None),
        LinkUse(name="in", links=(0,), capacity=5.0, carried=5.0, full=None),
    ]
    found = link_utilisation(uses, topology, 4.0)
    expected = np.zeros(topology.links)
    expected[: topology.first_up] = np.nan
    expected[[up, down, down + 1, 0]] = [0.75, 0.1875, 0.1875, 0.25]
    assert np.array_equal(found, expected, equal_nan=True)


def test_replicas_that_differ_are_counted_by_kind() -> None:
    kinds = [simulated(Conditions(slow=slow)).played for slow in ({}, {2: 1.5}, {1: 1.2, 2: 1.5})]
    assert kinds == [None, 2, 3]
