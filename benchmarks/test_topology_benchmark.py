"""How long fabrics of 16,384 ports take to build; what they hold is asserted."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from simulator.topology.topology import Fabric
from tests.simulator.topology.fabrics.cases import cables, chips, fabric

UNITS = 2048
PORTS = 8
POD = {"joins": 32, "radix": 64}
TREE: dict[str, Any] = {"tiers": [POD, {"joins": 4, "radix": 64}, {"radix": 64}]}
CLASSIC: dict[str, Any] = {"tiers": [{"joins": 4, "radix": 64}, {"radix": 64}, {"radix": 64}]}
DRAGONFLY: dict[str, Any] = {"routers": 16, "ports": 8, "global_links": 8}


@pytest.mark.parametrize(
    ("kind", "keys", "switches", "links"),
    [
        # 512 leaves and 512 spines with 32 cables up each, and 256 cores.
        ("rail-optimised", TREE, 1280, 2 * 16384),
        ("fat-tree", CLASSIC, 1280, 2 * 16384),
        # 128 groups of 16 x 15 / 2 links inside, and one link between each two.
        ("dragonfly", DRAGONFLY, 2048, 128 * 120 + 128 * 127 // 2),
    ],
)
def test_build_of_16384_ports(
    benchmark: BenchmarkFixture, kind: str, keys: dict[str, Any], switches: int, links: int
) -> None:
    built: Fabric = benchmark(lambda: fabric(kind, UNITS, PORTS, **keys))
    assert (len(built.graph.devices), cables(built)) == (switches, links)


def test_build_of_a_torus_of_16384_accelerators(benchmark: BenchmarkFixture) -> None:
    built: Fabric = benchmark(
        lambda: fabric("torus", 16384, chips(1), shape=[32, 32, 16], bandwidth="50 GB/s")
    )
    assert (len(built.graph.devices), cables(built)) == (16384, 3 * 16384)
