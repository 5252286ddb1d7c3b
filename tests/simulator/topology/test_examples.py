"""The shipped topology files load, alone and for a cluster of their profile."""

from __future__ import annotations

import pytest

from simulator.topology.build import load_topology, own_context, topology_of_nodes
from simulator.topology.registry import UNITS
from simulator.topology.topology_file import read_topology
from tests.simulator.topology.machines import EXAMPLES

SIZES = {
    "dgx-h100-two-racks": 64,
    "dgx-h100-two-to-one": 512,
    "hybrid-cube-mesh-edr": 128,
    "mi300x-fat-tree": 256,
    "nvl72-racks": 576,
    "pcie-workstations": 16,
    "tpu-v4-torus": 128,
    "two-sites": 128,
}
FILES = sorted(EXAMPLES.glob("*.toml"))


def test_every_example_is_tested() -> None:
    assert [path.stem for path in FILES] == sorted(SIZES)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_has_the_accelerators_that_it_says(path: object) -> None:
    assert (
        load_topology(str(path)).size == SIZES[str(path).rpartition("/")[2].removesuffix(".toml")]
    )


@pytest.mark.parametrize(
    "path", [path for path in FILES if read_topology(path).profile], ids=lambda path: path.stem
)
def test_an_example_serves_a_cluster_of_its_profile(path: object) -> None:
    file = read_topology(str(path))
    context = own_context(file)
    assert context.accelerators is not None
    topology = load_topology(str(path))
    nodes = topology.size // context.accelerators
    assert topology_of_nodes(file, context, nodes).links == topology.links


def test_examples_show_the_kinds_that_machines_have() -> None:
    shown = {read_topology(path).unit.kind for path in FILES}
    assert set(UNITS) - shown == {"graph"}
