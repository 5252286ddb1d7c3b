"""How long loads on a large fabric take; what they are is checked in tests/simulator/topology."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from simulator.topology.routing import Router, Spreading
from simulator.topology.topology import Topology
from tests.simulator.topology.machines import built, table

UNITS = 4096
RAIL_OPTIMISED = {
    "kind": "rail-optimised",
    "rails_meet": "top",
    "tiers": [{"joins": 32, "uplinks": 32}, {"joins": 16, "switches": 32, "uplinks": 16}, {}],
}


def three_tiers() -> Topology:
    """Return 16,384 accelerators in nodes of 4, behind a rail-optimised tree of three tiers."""
    return built(table({"kind": "nvswitch"}, RAIL_OPTIMISED), UNITS)


def test_set_up(benchmark: BenchmarkFixture) -> None:
    topology = three_tiers()
    pair = np.array([0]), np.array([topology.size - 1])
    hops = benchmark(lambda: Router(topology).hops(*pair))
    assert len(hops) == 1


@pytest.mark.parametrize("spreading", [Spreading.IDEAL, Spreading.HASH])
@pytest.mark.parametrize("shift", [1, 4], ids=["next-accelerator", "next-node"])
def test_a_ring_of_16384(benchmark: BenchmarkFixture, shift: int, spreading: Spreading) -> None:
    topology = three_tiers()
    router = Router(topology, spreading=spreading)
    source = np.arange(topology.size)
    target = np.roll(source, -shift)
    loads = benchmark(router.loads, source, target, np.ones(len(source)))
    assert loads[topology.first_up : topology.first_down].sum() == UNITS * shift


def test_a_permutation_of_16384(benchmark: BenchmarkFixture) -> None:
    topology = three_tiers()
    router = Router(topology)
    source = np.arange(topology.size)
    target = np.random.default_rng(0).permutation(topology.size)
    loads = benchmark(router.loads, source, target, np.ones(len(source)))
    assert loads.sum() == pytest.approx(router.hops(source, target).sum())
