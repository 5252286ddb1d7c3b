"""Topology files that importers write: they load, and what goes in comes out."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import InputError
from simulator.topology.build import build_topology
from simulator.topology.context import context_of
from simulator.topology.imports.formats import FORMATS, import_text
from simulator.topology.imports.records import ImportOptions
from simulator.topology.imports.write import Written, import_topology, table_text
from simulator.topology.topology import Topology
from simulator.topology.topology_file import parse_topology
from tests.simulator.topology.imports.samples import GB, WHERE, options, profile, rows
from tests.simulator.topology.imports.test_edge_list import NODE, both
from tests.simulator.topology.imports.test_nccl_xml import cpu, gpu, net, nic, nvlink, system
from tests.simulator.topology.imports.test_nvidia_smi import DGX
from tests.simulator.topology.imports.test_rocm_smi import NUMA, square, table
from tests.simulator.topology.imports.test_slurm import TREE

XML = system(
    cpu(gpu(0, nvlink("x", 18, "0x068000"), sm=90) + nic("0000:10:00.0", net("mlx5_0", 0, 400000))),
    cpu(
        gpu(1, nvlink("x", 18, "0x068000"), sm=90) + nic("0000:11:00.0", net("mlx5_1", 1, 400000)),
        1,
    ),
)
SAMPLES = {
    "nvidia-smi topo -m": (DGX, "dgx-h100", 8),
    "rocm-smi --showtopo": (
        table("Link Type between two GPUs", square(8, "XGMI")) + NUMA,
        "mi300x-node",
        8,
    ),
    "NCCL topology XML": (XML, "dgx-h100", 2),
    "Slurm topology.conf": (TREE, "dgx-h100", 64),
    "edge list": (both(3), "dgx-h100", 6),
}
"""A file of each format, the machine, and the accelerators of the topology."""
READ_ON = date(2026, 11, 30)


def written(
    folder: Path, texts: Sequence[str], given: ImportOptions, nodes: int | None = None
) -> Written:
    """Return what some texts make together."""
    paths = [rows(folder, f"file{number}", text) for number, text in enumerate(texts)]
    return import_topology(paths, given, title="imported", read_on=READ_ON, nodes=nodes)


def loaded(result: Written, name: str) -> Topology:
    """Return the topology in a written file."""
    file = parse_topology(tomllib.loads(result.text), WHERE)
    return build_topology(file, context_of(profile(name)))


def test_there_is_a_sample_of_each_format() -> None:
    assert {form.name for form in FORMATS} == set(SAMPLES)


@pytest.mark.parametrize("form", SAMPLES)
def test_a_file_of_each_format_becomes_a_topology(form: str, tmp_path: Path) -> None:
    text, name, accelerators = SAMPLES[form]
    result = written(tmp_path, [text], options(name))
    assert ([found.format for found in result.imported], loaded(result, name).size) == (
        [form],
        accelerators,
    )


@pytest.mark.parametrize("form", SAMPLES)
def test_each_format_is_told_from_the_others(form: str) -> None:
    text, name, _ = SAMPLES[form]
    assert import_text(text, WHERE, options(name)).format == form


def test_a_node_and_a_network_make_one_topology(tmp_path: Path) -> None:
    topology = loaded(written(tmp_path, [TREE, DGX], options()), "dgx-h100")
    assert (topology.size, topology.port_count) == (64, 8)
    assert topology.link_name(topology.first_up + 8) == "node1/mlx5_0 -> leaf0"


def test_cables_have_what_the_file_says(tmp_path: Path) -> None:
    topology = loaded(written(tmp_path, [both(3)], options()), "dgx-h100")
    rates = {topology.link_name(link): topology.capacity[link] for link in range(topology.links)}
    efficiency = profile("dgx-h100").node.nic.efficiency  # type: ignore[union-attr]
    assert rates["node2/gpu1 -> node2/nvswitch"] == 450 * GB
    assert rates["node2/nic1 -> leaf1"] == pytest.approx(50 * GB * efficiency)
    assert rates["leaf0 -> spine"] == pytest.approx(100 * GB * efficiency)


def test_ports_have_the_speed_of_the_cards(tmp_path: Path) -> None:
    slow = XML.replace('speed="400000"', 'speed="100000"')
    topology = loaded(written(tmp_path, [slow], options(), nodes=4), "dgx-h100")
    up = topology.capacity[topology.first_up : topology.first_down]
    assert np.allclose(up, 12.5 * GB * 0.95)


def test_the_network_of_the_profile_is_added_for_nodes(tmp_path: Path) -> None:
    assert loaded(written(tmp_path, [DGX], options(), nodes=64), "dgx-h100").size == 512


def test_a_network_of_racks_has_units_of_whole_domains(tmp_path: Path) -> None:
    text = "SwitchName=a Nodes=n[01-18]\nSwitchName=b Nodes=n[19-36]\nSwitchName=t Switches=a,b\n"
    topology = loaded(written(tmp_path, [text], options("gb200-nvl72")), "gb200-nvl72")
    assert (topology.units, topology.width) == (2, 72)
    assert topology.fabric is not None
    assert topology.fabric.attachment.tolist() == [
        [0] * topology.port_count,
        [1] * topology.port_count,
    ]


def test_racks_that_are_not_whole_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a unit of gb200-nvl72 is 18 nodes, .*\(found 8 nodes\)"):
        written(tmp_path, [TREE], options("gb200-nvl72"))


def test_two_descriptions_of_a_node_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"describes a node, as .*file0 does"):
        written(tmp_path, [NODE, DGX], options())


def test_the_problems_of_all_files_are_shown_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        written(tmp_path, ["gpu0 gpu1 7", "nonsense", "SwitchName=a"], options())
    assert [Path(problem.where).name for problem in caught.value.problems] == [
        "file0",
        "file1",
        "file2",
    ]


def test_the_nodes_of_a_network_are_named_in_order(tmp_path: Path) -> None:
    text = written(tmp_path, [TREE], options()).text
    assert text.endswith(
        "# Nodes in order:\n# node00, node01, node02, node03, node04, node05, node06, extra\n"
    )


def test_the_sources_of_a_file_are_in_it(tmp_path: Path) -> None:
    table = tomllib.loads(written(tmp_path, [DGX, TREE], options()).text)
    assert table["source"] == [
        {"what": "unit", "reference": "nvidia-smi topo -m: file0", "read_on": READ_ON},
        {"what": "fabric", "reference": "Slurm topology.conf: file1", "read_on": READ_ON},
    ]


def test_a_node_with_another_number_of_nics_than_the_network_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="a node of the network has 8 ports, and the node has 2 NICs"
    ):
        written(tmp_path, [XML, TREE], options())


NAMES = st.text(st.characters(blacklist_categories=["Cs"]), max_size=8)


@given(names=st.lists(NAMES, max_size=4), rate=st.floats(1, 1e13))
def test_any_table_is_read_back(names: list[str], rate: float) -> None:
    given_: dict[str, Any] = {
        "title": "".join(names),
        "unit": {"names": names, "cable": [{"ends": names, "rate": rate}]},
        "source": [{"what": "all", "read_on": READ_ON}],
    }
    assert tomllib.loads(table_text(given_)) == given_


@pytest.mark.parametrize("form", SAMPLES)
@given(data=st.data())
def test_a_file_that_is_cut_or_garbled_is_a_topology_or_an_error(
    form: str, data: st.DataObject
) -> None:
    text, name, _ = SAMPLES[form]
    begin, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    noise = data.draw(st.text(max_size=5))
    for broken in (text[:begin], text[:begin] + noise + text[end:]):
        try:
            import_text(broken, WHERE, options(name))
        except InputError as error:
            complaints = error.problems
            found = len(complaints)
        else:
            found = 1
        assert found > 0


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be one of: NCCL topology XML"),
        (b"\x00\x01\x02", "must be a text file"),
        (b"\xff\xfe\x00", "must be UTF-8 text"),
        (b"The quick brown fox\n", "text that begins with 'The quick brown fox'"),
        (b"gpu0 gpu1 9GB/s\n" * 2_500_000, "must be at most"),
    ],
)
def test_what_is_no_topology_is_an_error(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        import_topology([path], options(), title="none", read_on=READ_ON)
