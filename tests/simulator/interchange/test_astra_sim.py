"""The files beside the traces."""

from __future__ import annotations

import json

from simulator.hardware.cluster import ScaleUpKind
from simulator.hardware.profile import Profile
from simulator.interchange.astra_sim import NETWORK_FILE, SYSTEM_FILE, astra_sim_files
from simulator.parallel.layout import ParallelLayout
from simulator.units import GIB
from tests.fakes import changed, fake_node, fake_profile
from tests.simulator.interchange.traces import traced


def machine(kind: ScaleUpKind) -> Profile:
    node = fake_node(domain_size=4, accelerators=4, scale_up=6 * GIB, nic=2 * GIB)
    scale_up = changed(node.scale_up, kind=kind, latency=2e-6)
    nic = changed(node.nic, latency=4e-6) if node.nic else None
    return fake_profile(node=changed(node, scale_up=scale_up, nic=nic))


def test_domains_are_one_dimension_and_the_nics_another() -> None:
    """A message makes two hops through a switch, each half of the latency."""
    files, notes = astra_sim_files(machine(ScaleUpKind.NVSWITCH), traced(ParallelLayout(dp=8)))
    assert files[NETWORK_FILE].splitlines() == [
        "topology: [ Switch, Switch ]",
        "npus_count: [ 4, 2 ]",
        "bandwidth: [ 6, 2 ]",
        "latency: [ 1000, 2000 ]",
    ]
    assert json.loads(files[SYSTEM_FILE])["all-reduce-implementation"] == ["ring", "ring"]
    assert any("congestion-unaware" in note for note in notes)


def test_each_link_of_a_mesh_is_a_share_of_the_bandwidth() -> None:
    files, _ = astra_sim_files(machine(ScaleUpKind.XGMI_MESH), traced(ParallelLayout(dp=4)))
    assert "topology: [ FullyConnected ]" in files[NETWORK_FILE]
    assert "bandwidth: [ 2 ]" in files[NETWORK_FILE]


def test_a_machine_that_its_blocks_cannot_stand_for_is_left_out_and_told() -> None:
    files, notes = astra_sim_files(machine(ScaleUpKind.PCIE), traced(ParallelLayout(dp=4)))
    assert NETWORK_FILE not in files
    assert "pcie" in notes[0]
