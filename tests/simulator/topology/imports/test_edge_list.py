"""Edge lists: delimiters, headers, cables laid several times, nodes, networks, and both."""

from __future__ import annotations

import pytest

from simulator.errors import InputError
from simulator.topology.graph import DeviceKind
from simulator.topology.imports.edge_lines import read_edges
from tests.simulator.topology.imports.samples import GB, WHERE, capacity, options, read, unit_of

NODE = "gpu0 nvswitch 450GB/s\ngpu1 nvswitch 450GB/s\ngpu0 nic0 63GB/s\ngpu1 nic1 63GB/s\n"


@pytest.mark.parametrize(
    "text",
    [
        "gpu0 switch 450 GB/s 1 us",
        "gpu0 -- switch 450GB/s 1us",
        "gpu0,switch,450 GB/s,1 us",
        'gpu0;switch;"450 GB/s";1us',
        "gpu0\tswitch\t3600 Gbps\t1000 ns",
        "from to bandwidth latency\ngpu0 switch 450GB/s 1us",
        "latency (us),dst,src,bandwidth_gbps\n1,switch,gpu0,3600",
        "# a comment\n\ngpu0 switch 450GB/s 1us  # another",
        "Source,Target,Capacity [GB/s],Delay [us]\ngpu0,switch,450,1",
    ],
)
def test_all_spellings_of_an_edge_are_one(text: str) -> None:
    (edge,) = read_edges(text, WHERE)
    assert (edge.one, edge.other, edge.bandwidth) == ("gpu0", "switch", 450 * GB)
    assert edge.latency == pytest.approx(1e-6)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b 450", "line 1: bandwidth must be a number and a unit"),
        ("a b 450 GiB", "line 1: bandwidth 'GiB' is not a unit of bandwidth"),
        ("a b 1GB/s\na b", "line 2: must have 3 columns"),
        ("a a 1GB/s", "must name two devices"),
        ("a b 0GB/s", "greater than 0"),
        ("a b 1GB/s 3 parsec", "latency 'parsec' is not a unit of time"),
        ("# nothing", "has no edge"),
    ],
)
def test_a_line_that_is_no_edge_is_an_error_with_its_number(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_edges(text, WHERE)


def test_all_wrong_lines_are_shown_at_once() -> None:
    with pytest.raises(InputError) as caught:
        read_edges("a b 1\nc d 2GB/s\ne f\n", WHERE)
    assert [problem.key for problem in caught.value.problems] == ["line 1", "line 3"]


def test_names_say_what_devices_are() -> None:
    unit = unit_of(NODE + "nic0 pcie0 63GB/s\npcie0 cpu0 63GB/s\nmlx5_0 pcie0 63GB/s\n")
    assert dict(unit.devices) == {
        "cpu0": DeviceKind.HOST,
        "gpu0": DeviceKind.ACCELERATOR,
        "gpu1": DeviceKind.ACCELERATOR,
        "mlx5_0": DeviceKind.NIC,
        "nic0": DeviceKind.NIC,
        "nic1": DeviceKind.NIC,
        "nvswitch": DeviceKind.SWITCH,
        "pcie0": DeviceKind.SWITCH,
    }


def test_accelerators_are_ordered_by_number() -> None:
    text = "".join(f"gpu{n} switch 1GB/s\n" for n in (10, 9, 1, 0))
    assert unit_of(text).accelerators == ("gpu0", "gpu1", "gpu9", "gpu10")


def test_parallel_cables_add_up() -> None:
    found = read("gpu0 gpu1 25GB/s\ngpu0 gpu1 25GB/s\n")
    assert found.unit is not None
    assert capacity(found.unit, "gpu0", "gpu1") == 50 * GB
    assert "2 cables between gpu0 and gpu1, 50 GB/s together" in str(found.notes[0])


def test_a_cable_listed_in_both_directions_is_one() -> None:
    assert capacity(unit_of("gpu0 gpu1 25GB/s\ngpu1 gpu0 25GB/s\n"), "gpu0", "gpu1") == 25 * GB


def test_a_list_without_accelerators_is_a_network() -> None:
    text = "".join(f"node{n} leaf{n // 2} 400GB/s\n" for n in range(4))
    fabric = read(text + "leaf0 spine 400GB/s\nleaf1 spine 400GB/s\n").fabric
    assert fabric is not None
    assert (fabric.nodes, fabric.switches) == (
        ("node0", "node1", "node2", "node3"),
        ("leaf0", "leaf1", "spine"),
    )
    # The cable of a node is that of its eight NICs together.
    assert {(plug.port, plug.bandwidth) for plug in fabric.plugs} == {
        (p, 50 * GB) for p in range(8)
    }


def both(nodes: int, more: str = "") -> str:
    """Return the list of a network of equal nodes."""
    inside = "".join(
        f"node{n}/gpu{g} node{n}/nvswitch 450GB/s\nnode{n}/gpu{g} node{n}/nic{g} 63GB/s\n"
        for n in range(nodes)
        for g in range(2)
    )
    plugs = "".join(f"node{n}/nic{g} leaf{g} 50GB/s\n" for n in range(nodes) for g in range(2))
    return inside + plugs + "leaf0 spine 100GB/s\nleaf1 spine 100GB/s\n" + more


def test_prefixed_names_draw_nodes_and_their_network() -> None:
    found = read(both(3))
    assert found.unit is not None
    assert found.fabric is not None
    assert found.unit.accelerators == ("gpu0", "gpu1")
    assert {(p.node, p.port, p.switch) for p in found.fabric.plugs} == {
        (f"node{n}", port, f"leaf{port}") for n in range(3) for port in range(2)
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            both(2).replace("gpu1 node1/nvswitch 450", "gpu1 node1/nvswitch 400"),
            "node1 must be as node0 is",
        ),
        (
            both(2).replace("node1/nic1 leaf1 50", "node1/nic1 leaf1 25"),
            "node1: must be as node0 is",
        ),
        (both(2, "node0/gpu0 node1/gpu0 9GB/s\n"), "from node to node passes no switch"),
        (both(2, "node0/nic0 leaf1 50GB/s\n"), "node0/nic0 is plugged in at line 9 already"),
        (both(2, "node7/nic0 leaf1 50GB/s\n"), "node7: has a port and no device"),
        ("leaf0 spine 9GB/s", "names no accelerator"),
        ("node0 node1 9GB/s", "from node to node passes no switch"),
    ],
)
def test_a_list_that_is_no_cluster_is_an_error(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(text)


def test_a_network_needs_the_nics_of_a_profile() -> None:
    with pytest.raises(InputError, match=r"how many NICs a node has(.|\n)*--profile"):
        read("node0 leaf 9GB/s", options(None))
