from __future__ import annotations

from typing import Any

import pytest

from simulator.errors import InputError
from tests.simulator.topology.fabrics.cases import (
    GB,
    NIC,
    bisection,
    cables,
    fabric,
    refused,
    uplinks_of,
)

PAIR: dict[str, Any] = {
    "switches": ["left", "right"],
    "cable": [{"ends": ["left", "right"]}],
    "attachment": [{"switch": "left", "units": "0-1"}, {"switch": "right", "units": [2, 3]}],
}


def test_units_are_plugged_in_where_the_file_says() -> None:
    assert fabric("graph", 4, 2, **PAIR).attachment.tolist() == [[0, 0], [0, 0], [1, 1], [1, 1]]


def test_a_cable_has_the_bandwidth_of_a_nic_by_default() -> None:
    assert bisection(fabric("graph", 4, 2, **PAIR)) == NIC


def test_cables_in_parallel_are_counted() -> None:
    both = [{"ends": ["left", "right"], "count": 3, "bandwidth": "10 GB/s"}]
    built = fabric("graph", 4, 2, **{**PAIR, "cable": both})
    assert (uplinks_of(built, "left"), bisection(built)) == (["right"] * 3, 30 * GB)


def test_ports_of_a_unit_can_be_on_different_switches() -> None:
    sides = [
        {"switch": "left", "units": "0-3", "ports": "0"},
        {"switch": "right", "units": "0-3", "ports": [1]},
    ]
    built = fabric("graph", 4, 2, **{**PAIR, "attachment": sides})
    assert built.attachment.tolist() == [[0, 1]] * 4


def test_a_smaller_cluster_leaves_out_the_units_that_it_does_not_have() -> None:
    built = fabric("graph", 3, 1, **PAIR)
    assert (built.attachment.ravel().tolist(), cables(built)) == ([0, 0, 1], 1)


def test_all_names_that_do_not_fit_are_said_at_once() -> None:
    wrong = {
        "switches": ["left", "right", "left"],
        "cable": [{"ends": ["left", "left"]}, {"ends": ["left", "rigth"]}],
        "attachment": [{"switch": "lefft", "units": "0-3"}],
    }
    keys = [problem.key for problem in refused("graph", 4, 1, **wrong)]
    assert keys == [
        "fabric.switches",
        "fabric.cable[0]",
        "fabric.cable[1]",
        "fabric.attachment.0.switch",
    ]


def test_a_port_that_is_plugged_in_twice_is_refused() -> None:
    twice = [*PAIR["attachment"], {"switch": "right", "units": "1"}]
    (problem,) = refused("graph", 4, 1, **{**PAIR, "attachment": twice})
    assert (problem.key, problem.found) == (
        "fabric.attachment.2.units",
        "ports that are plugged into left already",
    )


def test_a_unit_that_one_attachment_names_twice_is_refused() -> None:
    twice = [{"switch": "left", "units": "0-3,2"}]
    (problem,) = refused("graph", 4, 1, **{**PAIR, "attachment": twice})
    assert problem.key == "fabric.attachment.0.units"


def test_a_port_that_no_unit_has_is_refused() -> None:
    wrong = [{"switch": "left", "units": "0-3", "ports": [2]}]
    (problem,) = refused("graph", 4, 2, **{**PAIR, "attachment": wrong})
    assert (problem.key, problem.rule) == ("fabric.attachment.0.ports", "a unit has ports 0 to 1")


def test_ports_without_a_switch_are_refused_with_their_number() -> None:
    (problem,) = refused("graph", 6, 2, **PAIR)
    assert problem.found == "4 ports without a switch, the first is port 0 of unit 4"


@pytest.mark.parametrize("text", ["", "a", "3-1", "0-", "1,,2", "0-9999999999"])
def test_texts_that_are_no_numbers_are_refused(text: str) -> None:
    wrong = [{"switch": "left", "units": text}]
    with pytest.raises(InputError, match=r"attachment\.0\.units"):
        fabric("graph", 4, 1, **{**PAIR, "attachment": wrong})
