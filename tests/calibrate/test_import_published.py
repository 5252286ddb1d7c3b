"""Every published log, table and trace imports, and cell by cell to what its table says."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from calibrate.import_options import Imported, ImportOptions
from calibrate.importing import import_file
from calibrate.points import CollectivePoint
from calibrate.records import Header, Status
from simulator.parallel.groups import Collective
from simulator.units import US
from tests.data import data_folder, needs_data

pytestmark = needs_data

LOGS = data_folder() / "collectives" / "nccl_logs"
CASES = data_folder() / "cases"
PATHOLOGICAL = "rtx6000d_2n_a2a_arOn"
Cells = dict[tuple[float, bool], float]


def names() -> list[str]:
    return sorted(path.stem for path in LOGS.glob("*.txt"))


def read(path: Path) -> Imported:
    return import_file(path, ImportOptions())


def published() -> dict[str, Cells]:
    """Microseconds by log, size and place; logs with one column of times have no place."""
    found: defaultdict[str, Cells] = defaultdict(dict)
    with (LOGS / "parsed.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            for column, in_place in (("time_us", False), ("time_inplace_us", True)):
                if row[column]:
                    found[row["id"]][float(row["bytes"]), in_place] = float(row[column])
    return found


def parsed(result: Imported) -> Cells:
    cells: Cells = {}
    for record in result.records:
        assert isinstance(record.point, CollectivePoint)
        assert record.seconds is not None
        cells[record.point.bytes, bool(record.point.in_place)] = record.seconds / US
    return cells


@pytest.mark.parametrize("name", names())
def test_every_cell_of_a_log_is_read_as_published(name: str) -> None:
    assert parsed(read(LOGS / f"{name}.txt")) == pytest.approx(published()[name], rel=1e-9)


@pytest.mark.parametrize("name", names())
def test_every_log_says_what_it_timed(name: str) -> None:
    with (LOGS / "index.csv").open(encoding="utf-8") as file:
        index = {row["file"]: row for row in csv.DictReader(file)}[f"{name}.txt"]
    points = [record.point for record in read(LOGS / f"{name}.txt").records]
    assert {
        (p.collective, p.ranks, p.nodes, p.dtype) for p in points if isinstance(p, CollectivePoint)
    } == {(Collective(index["op"]), int(index["gpus"]), int(index["nodes"]), "float32")}


def test_the_pathological_log_is_flagged_from_its_cliff_on() -> None:
    result = read(LOGS / f"{PATHOLOGICAL}.txt")
    rejected = {
        record.point.bytes
        for record in result.records
        if record.status is Status.REJECTED and isinstance(record.point, CollectivePoint)
    }
    assert min(rejected) == 2**24
    assert any("points are rejected" in note.rule for note in result.notes)


def test_of_healthy_logs_only_single_outliers_are_flagged() -> None:
    shares = {}
    for name in names():
        records = read(LOGS / f"{name}.txt").records
        rejected = sum(record.status is Status.REJECTED for record in records)
        shares[name] = rejected / len(records)
    pathological = shares.pop(PATHOLOGICAL)
    assert max(shares.values()) <= 0.06
    assert pathological > 0.2


def test_one_thread_for_eight_gpus_is_flagged() -> None:
    notes = read(LOGS / "dgx_a100_1n_allreduce.txt").notes
    assert any("one thread launches on all 8 GPUs" in note.rule for note in notes)


def test_a_pasted_table_is_completed_by_arithmetic_and_name() -> None:
    result = read(CASES / "nccl" / "nccl-tests_232_tree_2nodes_1gpu_4nic.txt")
    point = result.records[0].point
    assert isinstance(point, CollectivePoint)
    assert (point.collective, point.ranks, point.nodes) == (Collective.ALL_REDUCE, 2, 2)


def test_a_list_of_ranks_with_gaps_names_the_machine_only() -> None:
    result = read(CASES / "nccl" / "nccl-tests_294_group_and_pci_domain_header.txt")
    (header,) = result.lines
    assert isinstance(header, Header)
    assert (header.fingerprint.accelerator, header.fingerprint.world_size) == (
        "NVIDIA H100 80GB HBM3",
        None,
    )


def test_a_table_of_milliseconds_is_read_with_the_size_in_its_name() -> None:
    result = read(CASES / "nccl" / "nccl_569_ring_allreduce_1.6GB.csv")
    assert [record.seconds for record in result.records] == pytest.approx([0.363, 0.173, 0.132])


def test_a_shifted_header_is_read_by_its_row() -> None:
    (record,) = read(CASES / "nccl" / "rccl-tests_rocm-systems-6004_shifted_header.csv").records
    assert isinstance(record.point, CollectivePoint)
    assert (record.point.ranks, record.point.nodes, record.status) == (8, 1, Status.OK)


def test_a_trace_without_rank_or_kernels_names_the_machine() -> None:
    (header,) = read(CASES / "trace" / "hta_107_kineto_no_rank.json").lines
    assert isinstance(header, Header)
    assert header.fingerprint.accelerator == "Tesla P100-PCIE-16GB"


def test_a_trace_of_rocm_has_products_and_sums() -> None:
    result = read(CASES / "trace" / "mi250_minitoy_train_ROCm6_2_kineto.json.gz")
    kinds = [record.point.what for record in result.records]
    assert (kinds.count("gemm"), kinds.count("kernel_sum")) == (2, 5)


@pytest.mark.parametrize(
    "table", ["a100_sxm_gemm_vllm_0.14.0.csv", "a100_sxm_context_attention_vllm_0.14.0.csv"]
)
def test_a_table_of_kernels_imports_every_row(table: str) -> None:
    path = data_folder() / "kernels" / table
    rows = path.read_text(encoding="utf-8").count("\n") - 1
    assert sum(r.samples + r.outliers for r in read(path).records) == rows


def test_a_table_of_collectives_imports_every_row() -> None:
    path = data_folder() / "collectives" / "nccl_single_node.csv"
    rows = path.read_text(encoding="utf-8").count("\n") - 1
    assert sum(r.samples + r.outliers for r in read(path).records) == rows


@pytest.mark.parametrize("table", ["vtrain.csv", "torchtitan.csv"])
def test_a_table_of_steps_imports(table: str) -> None:
    result = read(data_folder() / "steps" / table)
    assert {record.point.what for record in result.records} == {"step"}
