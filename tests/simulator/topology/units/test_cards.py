"""Which accelerator uses which NIC, counted by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.topology.context import Context
from simulator.topology.units.cards import Cards, cards


def of_node(accelerators: int, nics: int) -> Context:
    return Context(accelerators=accelerators, nics=nics, nic_bandwidth=10.0, nic_efficiency=0.5)


def test_as_many_nics_as_accelerators_are_one_each() -> None:
    assert cards(4, None, of_node(4, 4)).affinity == (0, 1, 2, 3)


def test_neighbours_share_where_there_are_fewer_nics() -> None:
    assert cards(8, None, of_node(8, 4)).affinity == (0, 0, 1, 1, 2, 2, 3, 3)


def test_fewer_nics_that_do_not_divide_are_shared_as_evenly_as_it_goes() -> None:
    assert cards(8, None, of_node(8, 3)).affinity == (0, 0, 0, 1, 1, 1, 2, 2)


def test_several_nics_of_one_accelerator_are_one_port() -> None:
    found = cards(2, None, of_node(2, 8))
    assert found == Cards(names=("nic0-3", "nic4-7"), count=(4.0, 4.0), affinity=(0, 1))


def test_a_port_of_four_nics_carries_four_times_their_rate() -> None:
    context = of_node(2, 8)
    assert cards(2, None, context).bandwidth(context).tolist() == [20.0, 20.0]


def test_more_nics_that_do_not_divide_are_all_used() -> None:
    assert cards(4, None, of_node(4, 6)).count == (1.0, 2.0, 1.0, 2.0)


def test_a_domain_of_several_nodes_has_the_nics_of_all() -> None:
    found = cards(6, None, of_node(2, 1))
    assert (found.names, found.affinity) == (("nic0", "nic1", "nic2"), (0, 0, 1, 1, 2, 2))


def test_ports_of_several_nodes_have_the_numbers_of_their_nics() -> None:
    assert cards(4, None, of_node(2, 4)).names == ("nic0-1", "nic2-3", "nic4-5", "nic6-7")


def test_a_domain_smaller_than_a_node_has_its_share_of_the_nics() -> None:
    assert cards(4, None, of_node(8, 2)) == Cards(
        names=("nic0",), count=(1.0,), affinity=(0, 0, 0, 0)
    )


def test_a_share_of_half_a_nic_is_a_port_half_as_fast() -> None:
    context = of_node(8, 1)
    assert cards(4, None, context).bandwidth(context).tolist() == [2.5]


def test_given_affinity_is_repeated_for_each_node() -> None:
    assert cards(4, (1, 0), of_node(2, 2)).affinity == (1, 0, 3, 2)


def test_a_machine_without_nics_has_no_ports() -> None:
    assert cards(4, None, Context(accelerators=4)) == Cards()


def test_a_nic_that_there_is_not_and_a_short_list_are_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        cards(4, (0, 2), of_node(4, 2))
    assert [problem.key for problem in caught.value.problems] == [
        "unit.affinity[1]",
        "unit.affinity",
    ]


@given(node=st.integers(1, 16), nics=st.integers(1, 40), nodes=st.integers(1, 4))
def test_all_nics_are_used_and_shared_evenly(node: int, nics: int, nodes: int) -> None:
    found = cards(node * nodes, None, of_node(node, nics))
    users = Counter(found.affinity)
    assert sum(found.count) == nics * nodes
    assert set(users) == set(range(len(found.names)))
    assert max(users.values()) - min(users.values()) <= 1
    assert max(found.count) - min(found.count) <= 1


@given(node=st.integers(2, 16), nics=st.integers(1, 40), part=st.integers(1, 15))
def test_a_part_of_a_node_has_its_share_of_the_bandwidth(node: int, nics: int, part: int) -> None:
    context = of_node(node, nics)
    size = 1 + part % (node - 1)
    together = cards(size, None, context).bandwidth(context).sum()
    assert together == pytest.approx(5.0 * nics * size / node)
