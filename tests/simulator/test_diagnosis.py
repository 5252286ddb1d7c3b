"""What the step would gain without a slow rank, a slow link, the traffic of others or jitter."""

from __future__ import annotations

import pytest

from simulator.conditions import Conditions
from simulator.diagnosis import find_causes
from simulator.parallel.layout import ParallelLayout
from simulator.results import Category
from simulator.topology.network_file import BackgroundTraffic, JitterFile
from tests.fakes import NIC, fake_node, fake_profile, tiny_job
from tests.simulator.cost.network.networks import FLAT, network_on, two_racks
from tests.simulator.steps import forecaster

ONE_A_NODE = fake_profile(node=fake_node(domain_size=1, accelerators=1))
REPLICAS = ParallelLayout(dp=4)


def test_a_slow_rank_costs_what_its_compute_takes_longer() -> None:
    plain = forecaster(REPLICAS, profile=ONE_A_NODE)
    sound = plain.simulate(REPLICAS)
    compute = sound.step_time - sound.breakdown.seconds[Category.DATA_COMM]
    cast = plain.under(Conditions(slow={2: 1.5}))
    result = cast.simulate(REPLICAS)
    assert result.step_time == pytest.approx(sound.step_time + 0.5 * compute)
    (cause,) = find_causes(cast, REPLICAS, result)
    assert (cause.what, cause.seconds) == (
        "rank 2, 1.5 times as slow",
        pytest.approx(0.5 * compute),
    )


def test_two_slow_ranks_cost_something_only_together() -> None:
    cast = forecaster(REPLICAS, profile=ONE_A_NODE).under(Conditions(slow={1: 1.5, 2: 1.5}))
    causes = find_causes(cast, REPLICAS, cast.simulate(REPLICAS))
    assert [cause.what for cause in causes] == ["all 2 slow ranks"]


def test_a_slow_cable_is_named_with_what_it_costs() -> None:
    plain = forecaster(REPLICAS, profile=ONE_A_NODE)
    sound = network_on(ONE_A_NODE, FLAT, 4)
    up, down = sound.topology.first_up + 2, sound.topology.first_down + 2
    slow = network_on(ONE_A_NODE, FLAT, 4, changed={up: NIC / 4, down: NIC / 4})
    cast = plain.under(Conditions(network=slow))
    result = cast.simulate(REPLICAS)
    kind, cable = find_causes(cast, REPLICAS, result)
    assert kind.what == "all cables between node/nic and switch"
    assert cable.what == "node2/nic0 -> switch and 1 alike"
    gain = result.step_time - plain.simulate(REPLICAS).step_time
    assert cable.seconds == pytest.approx(gain)


def test_cables_of_a_tier_that_are_full_together_are_taken_away_together() -> None:
    """By hand: both uplinks pass a quarter of a NIC; a wider one alone gains nothing."""
    plain = forecaster(REPLICAS, profile=ONE_A_NODE)
    cast = plain.under(Conditions(network=network_on(ONE_A_NODE, two_racks(8.0), 4)))
    result = cast.simulate(REPLICAS)
    (cause,) = find_causes(cast, REPLICAS, result)
    assert cause.what == "all cables between leaf and spine"
    assert result.step_time - cause.seconds == pytest.approx(plain.simulate(REPLICAS).step_time)


def test_traffic_of_others_is_a_cause() -> None:
    plain = forecaster(REPLICAS, profile=ONE_A_NODE)
    network = network_on(ONE_A_NODE, FLAT, 4)
    others = BackgroundTraffic(source=(0,), target=(1,), bandwidth=NIC)
    cast = plain.under(Conditions(network=network, background=(others,)))
    causes = find_causes(cast, REPLICAS, cast.simulate(REPLICAS))
    assert "traffic of others" in [cause.what for cause in causes]


def test_jitter_costs_more_the_more_replicas_wait_for_the_slowest() -> None:
    jitter = JitterFile(deviation=0.2, steps=20, seed=3)
    gains = []
    for dp in (2, 16):
        layout = ParallelLayout(dp=dp)
        plain = forecaster(layout, profile=ONE_A_NODE, job=tiny_job(global_batch_size=16))
        cast = plain.under(Conditions(jitter=jitter))
        result = cast.simulate(layout)
        (cause,) = find_causes(cast, layout, result)
        compute = result.step_time - result.breakdown.seconds[Category.DATA_COMM]
        gains.append(cause.seconds / compute)
        assert len(result.drawn) == 20
    assert 0 < gains[0] < gains[1]


def test_the_same_seed_draws_the_same_steps() -> None:
    cast = forecaster(REPLICAS, profile=ONE_A_NODE)
    drawn = [
        cast.under(Conditions(jitter=JitterFile(deviation=0.1, seed=seed))).simulate(REPLICAS).drawn
        for seed in (5, 5, 6)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_sound_cluster_has_no_causes() -> None:
    cast = forecaster(REPLICAS, profile=ONE_A_NODE)
    assert find_causes(cast, REPLICAS, cast.simulate(REPLICAS)) == ()
