"""Bandwidths of machines that vendors publish, found again as the largest flow over all links."""

from __future__ import annotations

import pytest

from simulator.hardware.profile import load_profile
from simulator.topology.build import topology_of_profile
from simulator.topology.graph import DeviceKind
from tests.simulator.topology.machines import GB, cut, example


def test_half_of_a_dgx_h100_sends_1800_gb_a_second_to_the_other() -> None:
    """NVIDIA Hopper architecture, in depth (developer blog): 3.6 TB/s of bisection, both ways."""
    topology = topology_of_profile(load_profile("dgx-h100"), 1)
    assert 2 * cut(topology, range(4), range(4, 8)) == pytest.approx(3600 * GB)


def test_accelerators_of_an_nvl72_rack_send_and_receive_130_tb_a_second() -> None:
    """NVIDIA GB200 NVL72 data sheet: NVLink bandwidth 130 TB/s, both ways of 72 x 900 GB/s."""
    graph = topology_of_profile(load_profile("gb200-nvl72"), 18).unit.graph
    at_switch = graph.source == graph.of_kind(DeviceKind.SWITCH)[0]
    assert 2 * graph.bandwidth[at_switch].sum() == pytest.approx(129_600 * GB)


def test_half_of_a_dgx_1v_sends_over_the_six_links_of_the_cube() -> None:
    """Links 0-4 and 1-5 are two each, 2-6 and 3-7 one each: six of 25 GB/s.

    The largest flow also leaves by the two NICs of one half and comes back by those of the other.
    """
    topology = example("hybrid-cube-mesh-edr")
    links, over_the_leaf = 6 * 25 * GB, 2 * 0.95 * 12.5 * GB
    assert cut(topology, range(4), range(4, 8)) == pytest.approx(links + over_the_leaf)


def test_half_of_an_mi300x_node_sends_over_sixteen_links() -> None:
    """AMD CDNA 3 white paper: a link of 64 GB/s one way to each of 7 others."""
    topology = topology_of_profile(load_profile("mi300x-node"), 1)
    assert cut(topology, range(4), range(4, 8)) == pytest.approx(16 * 64 * GB)


def test_half_of_a_tpu_v4_pod_sends_23_tb_a_second_to_the_other() -> None:
    """Google Cloud, TPU v4: 24 TB/s of bisection a pod. 2 x 16 x 16 links of 45 GB/s."""
    topology = topology_of_profile(load_profile("tpu-v4-pod"), 1024)
    assert topology.fabric is not None
    graph = topology.fabric.graph
    depth = [int(name.split(".")[-1]) for name in graph.devices]
    crossing = [
        rate
        for one, other, rate in zip(graph.source, graph.target, graph.bandwidth, strict=True)
        if depth[one] < 8 <= depth[other]
    ]
    assert (len(crossing), sum(crossing)) == (512, pytest.approx(23_040 * GB))


def test_half_the_uplinks_carry_half_of_what_the_nics_do() -> None:
    """32 nodes of 8 NICs have 256 x 47.5 GB/s into their leaves, and half of it out of them."""
    topology = example("dgx-h100-two-to-one")
    assert cut(topology, range(256), range(256, 512)) == pytest.approx(128 * 47.5 * GB)


def test_racks_without_oversubscription_carry_all_of_their_nics() -> None:
    topology = example("nvl72-racks")
    assert cut(topology, range(288), range(288, 576)) == pytest.approx(288 * 47.5 * GB)


def test_pods_of_mi300x_send_a_quarter_of_what_their_leaves_do() -> None:
    topology = example("mi300x-fat-tree")
    assert cut(topology, range(128), range(128, 256)) == pytest.approx(128 * 46 * GB / 4)


def test_two_sites_send_what_the_link_between_them_carries() -> None:
    topology = example("two-sites")
    assert cut(topology, range(64), range(64, 128)) == pytest.approx(0.95 * 100 * GB)


def test_a_workstation_sends_what_its_nic_does() -> None:
    topology = example("pcie-workstations")
    assert cut(topology, range(4), range(4, 8)) == pytest.approx(0.9 * 3.125 * GB)


def test_pairs_of_a_workstation_send_what_the_uplink_of_their_switch_does() -> None:
    """31.5 GB/s of PCIe 4.0 x16, which is less than the 41.6 GB/s between sockets."""
    topology = example("pcie-workstations")
    assert cut(topology, [0, 1], [2, 3]) == pytest.approx(31.5 * GB)


def test_a_bridged_pair_sends_over_its_bridge_and_its_slot() -> None:
    topology = example("pcie-workstations")
    assert cut(topology, [0], [1]) == pytest.approx((56.25 + 31.5) * GB)
