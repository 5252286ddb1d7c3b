"""CSV of rccl-tests, JSON of nccl-tests and rccl-tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from calibrate.import_options import Imported
from calibrate.points import CollectivePoint
from calibrate.records import Header, Status
from simulator.errors import InputError
from simulator.parallel.groups import Collective
from tests.calibrate.logs import imported, times

MPI = (
    "numCycle,collective,nodes,ranks,ranksPerNode,gpusPerRank,"
    "size,type,redop,inplace,time,algbw,busbw,#wrong"
)
ROWS = """\
0,"AllReduce",2,16,8,1,1000000,"float","sum",0,100.0,10.0,18.75,"0"
0,"AllReduce",2,16,8,1,1000000,"float","sum",1,200.0,5.0,9.375,"N/A"
"""


def point(result: Imported, place: int = 0) -> CollectivePoint:
    found = result.records[place].point
    assert isinstance(found, CollectivePoint)
    return found


def test_a_csv_of_rccl_tests_names_its_ranks(tmp_path: Path) -> None:
    result = imported(tmp_path, f"{MPI}\n{ROWS}", name="out.csv")
    assert times(result) == pytest.approx({(1e6, False): 1e-4, (1e6, True): 2e-4})
    assert [record.status for record in result.records] == [Status.OK] * 2
    assert (point(result).ranks, point(result).nodes) == (16, 2)


def test_a_header_without_a_column_is_read_by_its_rows(tmp_path: Path) -> None:
    result = imported(tmp_path, f"{MPI.replace('nodes,', '')}\n{ROWS}", name="out.csv")
    assert (point(result).ranks, point(result).nodes) == (16, 2)
    assert "the header misses columns" in str(result.notes[0])


def test_a_csv_without_mpi_has_one_node(tmp_path: Path) -> None:
    text = """\
numCycle,collective,gpus,size,type,redop,inplace,time,algbw,busbw,#wrong
0,"AllGather",4,4000000,"float","none",0,100.0,40.0,30.0,"0"
"""
    result = imported(tmp_path, text, name="out.csv")
    assert (point(result).collective, point(result).ranks, point(result).nodes) == (
        Collective.ALL_GATHER,
        4,
        1,
    )
    assert result.records[0].status is Status.OK


def test_cycles_are_repeats(tmp_path: Path) -> None:
    text = f"{MPI}\n{ROWS}{ROWS.replace('0,', '1,', 1)}"
    assert {r.samples for r in imported(tmp_path, text, name="out.csv").records} == {2}


def test_a_broken_row_is_told_by_line(tmp_path: Path) -> None:
    result = imported(tmp_path, f'{MPI}\n{ROWS}0,"AllReduce",2,16\n', name="out.csv")
    assert len(result.records) == 2
    assert "line 4: left out: 4 cells do not fit the header" in str(result.notes[0])


def test_json_of_rccl_tests_is_read(tmp_path: Path) -> None:
    keys = (
        "numCycle name nodes ranks ranksPerNode gpusPerRank"
        " size type redop inPlace time algBw busBw wrong"
    )
    values = [0, "AllReduce", 2, 16, 8, 1, 1000000, "float", "sum", 0, 100.0, 10.0, 18.75, "0"]
    result = imported(tmp_path, json.dumps([dict(zip(keys.split(), values, strict=True))]))
    assert times(result) == pytest.approx({(1e6, False): 1e-4})
    assert (point(result).ranks, point(result).nodes) == (16, 2)


def nccl_json(**changes: Any) -> dict[str, Any]:
    """What nccl-tests 2.17 writes with -J; a process drives 2 GPUs and lists its first."""
    result = {"time": 100.0, "alg_bw": 10.0, "bus_bw": 15.0, "nwrong": 0.0}
    return {
        "version": 2,
        "args": ["./build/all_reduce_perf", "-J", "out.json"],
        "env": ["HOME=/root", "NCCL_ALGO=Ring"],
        "nccl_version": 22809,
        "config": {
            "nthreads": 1,
            "ngpus": 2,
            "blocking_collectives": "false",
            "devices": [
                {"rank": rank, "group": 0, "pid": 1, "hostname": "a", "device": rank,
                 "device_hex": "0x01", "device_info": "NVIDIA H100 80GB HBM3"}
                for rank in (0, 2)
            ],
        },
        "results": [
            {"size": 1000000, "count": 250000, "type": "float", "redop": "sum", "root": "    -1",
             "out_of_place": result, "in_place": {**result, "time": 110.5, "nwrong": None}}
        ],
        **changes,
    }  # fmt: skip


def test_json_of_nccl_tests_is_read(tmp_path: Path) -> None:
    result = imported(tmp_path, json.dumps(nccl_json()), name="out.json")
    header = result.lines[0]
    assert isinstance(header, Header)
    assert header.fingerprint.library == "2.28.9"
    assert header.fingerprint.environment == {"NCCL_ALGO": "Ring"}
    assert header.fingerprint.accelerator == "NVIDIA H100 80GB HBM3"
    assert (point(result).collective, point(result).ranks, point(result).nodes) == (
        Collective.ALL_REDUCE,
        4,
        1,
    )
    assert result.records[0].status is Status.OK


def test_a_json_time_that_contradicts_its_bandwidth_is_rejected(tmp_path: Path) -> None:
    result = imported(tmp_path, json.dumps(nccl_json()), name="out.json")
    assert result.records[1].status is Status.REJECTED
    assert "algbw" in result.records[1].reason


def test_json_that_was_cut_off_keeps_its_results(tmp_path: Path) -> None:
    whole = json.dumps(nccl_json(zeta=0))
    result = imported(tmp_path, whole[: whole.index('], "zeta"')], name="out.json")
    assert len(result.records) == 2
    assert "cut off" in str(result.notes)


@pytest.mark.parametrize("text", ["{}", "[]", '{"a": [1, 2]}', '[{"a": 1}]', '{"results": [{}]}'])
def test_other_json_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="is JSON, but of no kind that can be imported"):
        imported(tmp_path, text, name="x.json")
