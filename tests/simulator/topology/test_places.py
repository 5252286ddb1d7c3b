"""Orders of ranks by hand, and everything that can be wrong with a file of places."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.topology.places import places_of
from simulator.topology.places_checks import Nodes
from simulator.topology.places_file import parse_places
from simulator.topology.topology import Topology
from tests.simulator.topology.machines import built, table


def cluster(nodes: int = 2) -> Topology:
    """Return nodes of four accelerators."""
    return built(table({"kind": "nvswitch"}, {"kind": "flat"}), nodes)


def order(name: str, nodes: int = 2) -> list[int]:
    return places_of(name, cluster(nodes)).accelerators.tolist()


def from_file(folder: Path, text: str, ranks: int | None = None) -> list[int]:
    path = folder / "places.txt"
    path.write_text(text, "utf-8")
    return places_of(str(path), cluster(), ranks=ranks).accelerators.tolist()


def problems(folder: Path, text: str, ranks: int | None = None) -> list[str]:
    with pytest.raises(InputError) as caught:
        from_file(folder, text, ranks)
    name = str(folder / "places.txt")
    assert all(problem.where == name for problem in caught.value.problems)
    return [
        ": ".join(filter(None, (problem.key, problem.rule))) for problem in caught.value.problems
    ]


def test_block_fills_one_node_after_another() -> None:
    assert order("block") == [0, 1, 2, 3, 4, 5, 6, 7]


def test_cyclic_deals_ranks_to_nodes_one_at_a_time() -> None:
    assert order("cyclic") == [0, 4, 1, 5, 2, 6, 3, 7]


def test_a_plane_deals_several_at_a_time() -> None:
    assert order("plane=2") == [0, 1, 4, 5, 2, 3, 6, 7]


def test_a_plane_that_does_not_divide_a_node_leaves_a_rest() -> None:
    assert order("plane=3") == [0, 1, 2, 4, 5, 6, 3, 7]


@given(nodes=st.integers(1, 5), plane=st.integers(1, 9))
def test_every_order_places_each_rank_once(nodes: int, plane: int) -> None:
    assert sorted(order(f"plane={plane}", nodes)) == list(range(4 * nodes))


def test_a_node_may_be_less_than_a_unit() -> None:
    found = places_of("cyclic", cluster(1), node_size=2).accelerators
    assert found.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize("name", ["blok", "plane=0", "plane=", "no/such/file"])
def test_an_unknown_order_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InputError, match=r'is "block", "cyclic", "plane=N"'):
        order(name)


def test_more_ranks_than_accelerators_are_refused() -> None:
    with pytest.raises(InputError, match="there are 8 accelerators"):
        places_of("block", cluster(), ranks=9)


def test_a_file_names_a_node_for_each_rank(tmp_path: Path) -> None:
    text = "node1\nnode0\n\n# the others\nnode[0-1,0]\n1\nnode0\n1\n"
    assert from_file(tmp_path, text) == [4, 0, 1, 5, 2, 6, 3, 7]


def test_a_file_of_as_many_nodes_as_are_needed_fills_each(tmp_path: Path) -> None:
    assert from_file(tmp_path, "node[1,0]\n") == [4, 5, 6, 7, 0, 1, 2, 3]


def test_slots_say_how_many_ranks_a_node_takes(tmp_path: Path) -> None:
    text = "node1 slots=2\nnode0 slots=4\nnode1 slots=2"
    assert from_file(tmp_path, text) == [4, 5, 0, 1, 2, 3, 6, 7]


def test_a_table_places_ranks_in_any_order(tmp_path: Path) -> None:
    text = "rank,node,accelerator\n1,node1,3\n0,0,2\n"
    assert from_file(tmp_path, text, ranks=2) == [2, 7]


def test_places_are_read_as_they_are_written(tmp_path: Path) -> None:
    places = places_of("plane=2", cluster())
    assert from_file(tmp_path, places.csv()) == places.accelerators.tolist()


def test_everything_wrong_with_a_table_is_said_at_once(tmp_path: Path) -> None:
    text = "0,node0,0\n0,node0,1\n1,node0,0\n2,node7,0\n3,node1,4\n9,node1,1\n4,node1\n"
    assert problems(tmp_path, text, ranks=4) == [
        "line 7: must be rank,node,accelerator, the first and the last as numbers",
        "line 4: no such node; there are 2, node0 to node1",
        "line 2: rank 0 has a place since line 1",
        "line 6: ranks are 0 to 3",
        "line 3: node0 accelerator 0 has a rank since line 1",
        "line 5: node1 has 4 accelerators, one for each rank",
    ]


def test_ranks_that_a_table_leaves_out_are_one_problem(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no place for rank 1, 3") as caught:
        from_file(tmp_path, "0,node0,0\n2,node0,1\n", ranks=4)
    assert len(caught.value.problems) == 1


def test_a_node_that_is_named_too_often_is_full(tmp_path: Path) -> None:
    assert problems(tmp_path, "node0 slots=5\nnode1 slots=3\n") == [
        "line 1: node0 has 4 accelerators, one for each rank"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node0\nnode1\nnode0\n", "must name 8 nodes, one for each rank, or the 2 nodes"),
        ("", "must name 8 nodes"),
        ("node[0-\n", "line 1: must close each bracket"),
        ("node0 slots=four\nnode1\n", "line 1: after the nodes of a line only slots=N may follow"),
        ("node[0-1] slots=2\n", "each of the 8 ranks has a place"),
        ("nod0\nnode1\n", "line 1: no such node"),
    ],
)
def test_a_wrong_host_file_says_what_and_where(tmp_path: Path, text: str, expected: str) -> None:
    assert problems(tmp_path, text)[0].startswith(expected)


@given(text=st.text(alphabet="node[]0-9,= slt#\n", max_size=80))
def test_no_file_makes_it_fail_otherwise(text: str) -> None:
    nodes = Nodes(names=("node0", "node1"), size=4)
    found = list(range(8))
    with suppress(InputError):
        found = parse_places(text, "places.txt", 8, nodes).tolist()
    assert sorted(found) == list(range(8))
