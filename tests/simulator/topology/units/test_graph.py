"""Units drawn device by device, and all that can be wrong with the drawing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.simulator.topology.machines import CONTEXT, built, problems_of, table


def drawn(cable: list[str], **keys: Any) -> dict[str, Any]:
    """Return a unit of which each cable "a b 10" is 10 GB/s wide."""
    words = [line.split() for line in cable]
    cables = [{"ends": [a, b], "bandwidth": f"{rate} GB/s"} for a, b, rate in words]
    return table({"kind": "graph", "accelerators": ["a", "b"], "cable": cables, **keys})


def test_the_nearest_port_is_the_one_over_the_fewest_cables() -> None:
    given = drawn(
        ["a s 10", "b s 10", "s north 10", "a south 1"], switches=["s"], nics=["north", "south"]
    )
    assert built(given).unit.affinity.tolist() == [1, 0]


def test_of_two_as_near_the_wider_is_taken() -> None:
    given = drawn(
        ["a s 10", "b s 10", "s north 10", "s south 1"], switches=["s"], nics=["south", "north"]
    )
    assert built(given).unit.affinity.tolist() == [1, 1]


def test_of_two_alike_each_has_one() -> None:
    given = drawn(
        ["a s 10", "b s 10", "s north 10", "s south 10"], switches=["s"], nics=["south", "north"]
    )
    assert built(given).unit.affinity.tolist() == [0, 1]


def test_no_nic_is_near_over_another_accelerator() -> None:
    given = drawn(
        ["a b 100", "a near 10", "b s 10", "s t 10", "t far 10"],
        switches=["s", "t"],
        nics=["near", "far"],
    )
    assert built(given).unit.affinity.tolist() == [0, 1]


def test_given_affinity_is_kept() -> None:
    given = drawn(["a north 10", "b south 10", "a b 10"], nics=["north", "south"])
    given["unit"]["affinity"] = ["south", "north"]
    assert built(given).unit.affinity.tolist() == [1, 0]


def test_a_port_may_say_its_own_rate_and_latency() -> None:
    given = drawn(["a north 10", "b north 10"], nics=["north"])
    given["unit"]["port"] = [{"device": "north", "bandwidth": "20 GB/s", "latency": "7 us"}]
    unit = built(given).unit
    assert (unit.port_bandwidth.tolist(), unit.port_latency.tolist()) == ([18e9], [7e-6])


def test_an_accelerator_that_is_a_port_has_all_its_links() -> None:
    given = drawn(["a b 10"], port=[{"device": "a"}, {"device": "b"}])
    unit = built(given).unit
    assert unit.port_bandwidth.tolist() == [CONTEXT.scale_up_bandwidth] * 2
    assert np.array_equal(unit.ports, unit.accelerators)


def test_everything_that_is_wrong_with_a_drawing_is_said_at_once() -> None:
    given = drawn(
        ["a s 10", "a c 10", "s a 10", "b b 10"],
        switches=["s", "a"],
        nics=["north"],
        port=[{"device": "north"}, {"device": "north"}, {"device": "s"}],
        affinity=["north"],
    )
    assert problems_of(given) == [
        "net.toml: unit.accelerators: this device is named 2 times; each has one name (found 'a')"
        "\n    fix: give each device its own name",
        "net.toml: unit.switches: this device is named 2 times; each has one name (found 'a')"
        "\n    fix: give each device its own name",
        "net.toml: unit.cable[1]: no such device (found 'c')\n    fix: one of: a, b, north, s",
        "net.toml: unit.cable[2]: the same two devices as unit.cable[0] (found s - a)"
        "\n    fix: write one cable with the bandwidth of both",
        "net.toml: unit.cable[3]: a cable joins two different devices (found 'b')"
        "\n    fix: name another device at one of its ends",
        "net.toml: unit.port: this port is plugged in 2 times; a port takes one cable "
        "(found 'north')\n    fix: name another port, or leave one of them out",
        "net.toml: unit.port: no such device (found 's')\n    fix: one of: a, b, north",
        "net.toml: unit.affinity: has the port of each of the 2 accelerators (found 1 entries)"
        "\n    fix: give one name for each, or leave the list out",
    ]


def test_an_accelerator_and_a_port_that_nothing_joins_are_both_named() -> None:
    found = problems_of(drawn(["a north 10"], nics=["north", "south"]))
    assert [line.partition(" (found ")[2].partition(")")[0] for line in found] == [
        "node0/b",
        "node0/south",
    ]


def test_a_cable_that_carries_nothing_is_refused_with_its_key() -> None:
    assert problems_of(drawn(["a b 0"])) == [
        "net.toml: unit.cable[0].bandwidth: must be greater than 0 (found '0 GB/s')"
    ]


def test_a_cable_that_carries_less_than_nothing_is_refused_with_its_key() -> None:
    assert problems_of(drawn(["a b -1"])) == [
        "net.toml: unit.cable[0].bandwidth: must be greater than 0 (found '-1 GB/s')"
    ]
