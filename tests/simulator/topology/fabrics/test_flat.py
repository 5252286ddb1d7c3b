from __future__ import annotations

from tests.simulator.topology.fabrics.cases import NIC, bisection, fabric, islands


def test_a_flat_fabric_is_one_switch_without_cables_of_its_own() -> None:
    built = fabric("flat", 3, 2)
    assert (built.graph.devices, len(built.graph), islands(built)) == (("switch",), 0, 1)


def test_only_the_ports_limit_a_flat_fabric() -> None:
    assert bisection(fabric("flat", 6, 2)) == 6 * NIC


def test_a_message_takes_the_latency_of_a_nic_from_port_to_port() -> None:
    assert (2 * fabric("flat", 2, 1).port_latency).tolist() == [[4e-6], [4e-6]]
