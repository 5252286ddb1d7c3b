"""Chakra traces: written, read back, and refused with all that is wrong."""

from __future__ import annotations

import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.interchange.chakra_files import (
    GROUPS_FILE,
    prefixed,
    split_messages,
    write_chakra,
)
from simulator.interchange.chakra_nodes import attributes_of
from simulator.interchange.chakra_read import read_chakra
from simulator.interchange.chakra_schema import (
    AttributeProto,
    CommType,
    GlobalMetadata,
    Node,
    NodeType,
)
from simulator.interchange.records import NodeKind
from simulator.interchange.result import replay
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ContextExchange, ParallelLayout
from tests.fakes import SCALE_UP, fake_profile
from tests.simulator.interchange.traces import estimated, traced

HEAD = GlobalMetadata(version="0.0.4")


def attribute(name: str, value: float | str | bool) -> Any:
    kind = {bool: "bool_val", int: "int64_val", float: "double_val", str: "string_val"}
    return AttributeProto(**{"name": name, kind[type(value)]: value})


def chakra_node(number: int, kind: NodeType, *after: int, micros: int = 0, **known: Any) -> Any:
    node = Node(id=number, name=f"n{number}", type=kind.value, duration_micros=micros)
    node.data_deps.extend(after)
    node.attr.extend(attribute(name, value) for name, value in known.items())
    return node


def write_ranks(folder: Path, *ranks: list[Any], prefix: str = "run") -> Path:
    folder.mkdir(exist_ok=True)
    for rank, nodes in enumerate(ranks):
        data = b"".join(prefixed(each.SerializeToString()) for each in (HEAD, *nodes))
        (folder / f"{prefix}.{rank}.et").write_bytes(data)
    return folder


@pytest.mark.parametrize(
    "layout",
    [
        ParallelLayout(dp=2),
        ParallelLayout(tp=2, pp=2, dp=2, zero_stage=1),
        ParallelLayout(cp=2, cp_comm_type=ContextExchange.RING),
    ],
    ids=str,
)
def test_what_is_written_is_read_back(layout: ParallelLayout, tmp_path: Path) -> None:
    trace = traced(layout)
    write_chakra(tmp_path / "out", trace, fake_profile(), step_seconds=2.5)
    found, forecast = read_chakra(tmp_path / "out")
    expected = trace.workload()
    assert (dict(found.groups), forecast) == (dict(expected.groups), 2.5)
    for read, written in zip(found.ranks, expected.ranks, strict=True):
        for got, wanted in zip(read, written, strict=True):
            for name in (
                "number",
                "name",
                "kind",
                "after",
                "seconds",
                "collective",
                "group",
                "tag",
            ):
                assert getattr(got, name) == getattr(wanted, name)
            # Bytes and FLOP are whole numbers in the schema.
            assert got.size == pytest.approx(wanted.size, abs=1.0)
            assert got.peer == wanted.peer


@pytest.mark.parametrize(
    "layout", [ParallelLayout(pp=p, dp=d) for p in (1, 2, 4) for d in (1, 2)], ids=str
)
def test_a_step_read_back_takes_as_long_as_it_did(layout: ParallelLayout, tmp_path: Path) -> None:
    """Within a hundredth of a percent: sizes are rounded to bytes, the norm is 4 bytes more."""
    trace, seconds = traced(layout), estimated(layout)
    write_chakra(tmp_path / "out", trace, fake_profile(), step_seconds=seconds)
    found = replay(read_chakra(tmp_path / "out")[0], fake_profile())
    assert found.recorded == pytest.approx(seconds, rel=1e-9)
    assert found.step_time == pytest.approx(seconds, rel=1e-4)


def test_durations_in_whole_microseconds_add_up_to_those_of_the_step(tmp_path: Path) -> None:
    trace = traced(ParallelLayout(dp=2))
    write_chakra(tmp_path / "out", trace, fake_profile(), step_seconds=1.0)
    messages = list(split_messages((tmp_path / "out" / "step.0.et").read_bytes()))
    nodes = [Node.FromString(each) for each in messages[1:]]
    micros = sum(node.duration_micros for node in nodes if node.type == NodeType.COMP_NODE)
    exact = sum(node.seconds for node, _ in trace.stages[0] if node.kind is NodeKind.COMPUTE)
    assert micros == pytest.approx(exact * 1e6, abs=1.0)


def test_nodes_have_the_attributes_that_the_feeders_read(tmp_path: Path) -> None:
    write_chakra(tmp_path / "out", traced(ParallelLayout(pp=2)), fake_profile(), step_seconds=1.0)
    messages = list(split_messages((tmp_path / "out" / "step.1.et").read_bytes()))
    nodes = [Node.FromString(each) for each in messages[1:]]
    received = next(node for node in nodes if node.type == NodeType.COMM_RECV_NODE)
    known = attributes_of(received)
    assert {"is_cpu_op", "comm_src", "comm_dst", "comm_size", "comm_tag"} <= set(known)
    assert (known["is_cpu_op"], known["comm_src"], known["comm_dst"]) == (False, 0, 1)
    joint = next(node for node in nodes if node.type == NodeType.COMM_COLL_NODE)
    assert attributes_of(joint)["pg_name"] == "1"
    assert attributes_of(joint)["comm_type"] == CommType.ALL_REDUCE


def test_an_all_gather_is_written_with_the_part_of_a_rank(tmp_path: Path) -> None:
    layout = ParallelLayout(dp=4, zero_stage=1)
    write_chakra(tmp_path / "out", traced(layout), fake_profile(), step_seconds=1.0)
    messages = list(split_messages((tmp_path / "out" / "step.0.et").read_bytes()))
    sizes = {}
    for node in map(Node.FromString, messages[1:]):
        if node.type == NodeType.COMM_COLL_NODE:
            known = attributes_of(node)
            sizes[CommType(known["comm_type"])] = known["comm_size"]
    # As many parameters are gathered as gradients were scattered, two bytes each.
    assert sizes[CommType.REDUCE_SCATTER] == pytest.approx(4 * sizes[CommType.ALL_GATHER], abs=4)


def test_a_folder_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(InputError, match="nothing is overwritten"):
        write_chakra(tmp_path, traced(ParallelLayout()), fake_profile(), step_seconds=1.0)
    assert (tmp_path / "mine").read_text() == "precious"


def test_traces_of_others_are_read(tmp_path: Path) -> None:
    """Two ranks compute 2 us, reduce 1 GB over a link of 100 GB/s (10 ms), compute 3 us."""
    nodes = [
        chakra_node(4, NodeType.COMP_NODE, micros=2),
        chakra_node(6, NodeType.COMM_COLL_NODE, 4, comm_type=0, comm_size=10**9, is_cpu_op=False),
        chakra_node(9, NodeType.COMP_NODE, 6, micros=3),
    ]
    found, forecast = read_chakra(write_ranks(tmp_path / "et", nodes, nodes))
    assert forecast is None
    assert replay(found, fake_profile()).step_time == pytest.approx(5e-6 + 1e9 / SCALE_UP)


def test_groups_of_a_pytorch_trace_stand_in_its_first_node(tmp_path: Path) -> None:
    listed = json.dumps([{"pg_name": "3", "ranks": [0, 1]}, {"pg_name": "4", "ranks": []}])
    first = chakra_node(0, NodeType.METADATA_NODE)
    first.inputs.values = f"['{listed}']"
    call = chakra_node(1, NodeType.COMM_COLL_NODE, comm_type=0, comm_size=8, pg_name="3")
    found, _ = read_chakra(write_ranks(tmp_path / "et", [first, call], [first, call], [first]))
    assert found.groups == {3: (0, 1), 4: (0, 1, 2)}


def test_a_barrier_moves_nothing(tmp_path: Path) -> None:
    nodes = [
        chakra_node(0, NodeType.COMM_COLL_NODE, comm_type=CommType.BARRIER.value, comm_size=10**9)
    ]
    found, _ = read_chakra(write_ranks(tmp_path / "et", nodes, nodes))
    assert (found.ranks[0][0].collective, found.ranks[0][0].size) == (Collective.ALL_REDUCE, 0.0)


def errors(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_chakra(folder)
    return str(caught.value)


def test_everything_wrong_with_all_files_is_told(tmp_path: Path) -> None:
    one = [
        chakra_node(0, NodeType.STORAGE_NODE),
        chakra_node(1, NodeType.COMM_COLL_NODE, comm_size=5),
        chakra_node(2, NodeType.COMM_COLL_NODE, comm_type=3, comm_size=5),
    ]
    other = [
        chakra_node(0, NodeType.COMM_SEND_NODE, comm_size=5),
        chakra_node(0, NodeType.COMM_COLL_NODE, comm_type=0, comm_size=-5, pg_name="tp"),
    ]
    text = errors(write_ranks(tmp_path / "et", one, other))
    for part in ("STORAGE_NODE", "(n1).comm_type", "GATHER", "(n0).comm_dst", "its own", "'tp'"):
        assert part in text
    assert "run.0.et" in text
    assert "run.1.et" in text


def test_missing_ranks_are_named(tmp_path: Path) -> None:
    folder = write_ranks(tmp_path / "et", [], [], [])
    (folder / "run.1.et").unlink()
    assert "run.1.et first" in errors(folder)


def test_traces_of_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    folder = write_ranks(tmp_path / "et", [])
    write_ranks(folder, [], prefix="other")
    assert "one run" in errors(folder)


def test_a_folder_without_traces_and_one_that_is_not_there_are_refused(tmp_path: Path) -> None:
    assert "no execution traces" in errors(tmp_path)
    assert "cannot be read" in errors(tmp_path / "nowhere")


def test_wrong_groups_are_told(tmp_path: Path) -> None:
    folder = write_ranks(tmp_path / "et", [], [])
    (folder / GROUPS_FILE).write_text('{"1": [0, 7], "b": [0], "2": 5}')
    assert errors(folder).count("must") == 3


@given(st.binary(max_size=200))
def test_no_bytes_whatever_cause_a_traceback(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "x.0.et").write_bytes(data)
        with suppress(InputError):
            read_chakra(folder)


NAMES = ("comm_type", "comm_size", "comm_src", "comm_dst", "comm_tag", "pg_name", "num_ops")
OWN = ("traincast.seconds", "traincast.algorithm", "traincast.network_share", "is_cpu_op")
VALUES = st.one_of(
    st.integers(-2, 9), st.floats(), st.text(max_size=3), st.booleans(), st.just("1")
)


@given(
    st.lists(
        st.tuples(st.sampled_from(NodeType), st.dictionaries(st.sampled_from(NAMES + OWN), VALUES)),
        max_size=4,
    )
)
def test_no_attributes_whatever_cause_a_traceback(nodes: list[tuple[NodeType, Any]]) -> None:
    made = [chakra_node(number, kind, **known) for number, (kind, known) in enumerate(nodes)]
    with tempfile.TemporaryDirectory() as folder, suppress(InputError):
        found, _ = read_chakra(write_ranks(Path(folder), made, made))
        replay(found, fake_profile())


@given(st.lists(st.binary(max_size=400), max_size=5))
def test_messages_are_split_where_they_were_joined(messages: list[bytes]) -> None:
    assert list(split_messages(b"".join(map(prefixed, messages)))) == messages


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "run.0.et").symlink_to("/dev/zero")
    (tmp_path / "run.1.et").mkdir()
    with pytest.raises(InputError) as caught:
        read_chakra(tmp_path)
    assert [problem.rule for problem in caught.value.problems] == ["must be a file"] * 2


def test_a_rank_that_is_there_twice_is_told(tmp_path: Path) -> None:
    folder = write_ranks(tmp_path / "t", [])
    (folder / "run.00.et").write_bytes((folder / "run.0.et").read_bytes())
    with pytest.raises(InputError, match="must hold each rank once"):
        read_chakra(folder)


def test_seconds_that_have_no_finite_sum_are_refused(tmp_path: Path) -> None:
    known: dict[str, Any] = {"traincast.seconds": 1.7e308}
    nodes = [chakra_node(n, NodeType.COMP_NODE, **known) for n in range(2)]
    with pytest.raises(InputError, match="must be a number from 0 to 1e\\+12"):
        read_chakra(write_ranks(tmp_path / "t", nodes))


@pytest.mark.parametrize("seconds", [float("nan"), "long", -1.0])
def test_a_forecast_that_is_no_time_is_refused(tmp_path: Path, seconds: float | str) -> None:
    folder = write_ranks(tmp_path / "t", [])
    head = GlobalMetadata(version="0.0.4")
    head.attr.append(attribute("traincast.step_seconds", seconds))
    (folder / "run.0.et").write_bytes(prefixed(head.SerializeToString()))
    with pytest.raises(InputError, match=r"traincast\.step_seconds: must be a number"):
        read_chakra(folder)


@pytest.mark.parametrize("ranks", ["[0, 7]", "[0, 0]", "[-1, 0]"])
def test_groups_in_a_trace_hold_ranks_that_are_there(tmp_path: Path, ranks: str) -> None:
    node = chakra_node(0, NodeType.METADATA_NODE)
    node.inputs.values = f'["[{{"pg_name": 1, "ranks": {ranks}}}]"]'
    with pytest.raises(InputError, match="must name ranks from 0 to 0, each once"):
        read_chakra(write_ranks(tmp_path / "t", [node]))


def test_an_algorithm_that_cannot_do_it_is_told_by_its_node(tmp_path: Path) -> None:
    known: dict[str, Any] = {"comm_type": 0, "comm_size": 8, "traincast.algorithm": "pairwise"}
    nodes = [chakra_node(3, NodeType.COMM_COLL_NODE, **known)]
    found, _ = read_chakra(write_ranks(tmp_path / "t", nodes, nodes))
    with pytest.raises(InputError, match=r"node 3 \(n3\)\.algorithm: does not serve all_reduce"):
        replay(found, fake_profile())
