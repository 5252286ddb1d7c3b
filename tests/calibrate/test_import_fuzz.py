"""No text, however odd, ends an import with anything but words."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from calibrate.import_arithmetic import ranks_by_factor
from calibrate.import_options import ImportOptions
from calibrate.import_samples import Printed, Sample, printed
from calibrate.importing import import_file
from calibrate.records import Header, Record
from simulator.errors import InputError
from simulator.parallel.groups import Collective, bus_factor
from tests.calibrate.logs import TABLE, devices, log

WORDS = st.sampled_from(
    [
        "#", "size", "time", "busbw", "algbw", "(us)", "(B)", "count", "N/A", "nan", "inf", "1e400",
        "-1", "0", "8", "1048576", "104.86", "float", "sum", "none", "[0]", "0:", "NCCL", "version",
        "Rank", "Pid", "on", "device", "Group", "all_reduce_perf", "-g", "mpirun", "-np", "nThread",
        "nGpus", "Avg bus bandwidth : x", "in-place", "out-of-place", ",", '"', "\t", "²", "1_0",
    ]
)  # fmt: skip
LINES = st.lists(st.lists(WORDS, max_size=14).map(" ".join), max_size=12).map("\n".join)
CELLS = st.one_of(WORDS, st.text(max_size=6), st.floats().map(str), st.integers().map(str))
HEADERS = st.sampled_from(
    [
        "gpu,nccl_version,op,dtype,gpus,nodes,bytes,time_us",
        "dtype,m,n,k,time_us",
        "b,m,n,k,layout,acc,out,t,gpu",
        "batch_size,seq_len,num_heads,num_key_value_heads,head_dim,time_us",
        "hardware,gpus,framework,layers,hidden,heads,vocab,seq_len,global_batch,tp,step_time_s",
        "numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw",
        "gpus_per_node,nodes,time_ms",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["ph", "cat", "name", "ts", "dur", "args", "External id", "correlation", "Input Dims",
             "Input type", "Input Strides", "Collective name", "In msg nelems", "Group size",
             "dtype", "config", "devices", "rank", "size", "time", "out_of_place", "in_place",
             "inPlace", "alg_bw", "bus_bw", "world_size", "totalGlobalMem", "id"]
        ),
        inner | st.sampled_from(["X", "kernel", "cpu_op", "aten::mm", "ncclDevKernel_AllReduce"]),
        max_size=8,
    ),
    max_leaves=24,
)  # fmt: skip


def survives(data: bytes, name: str = "x") -> None:
    """Import, and check that what is returned can be read back."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        try:
            result = import_file(path, ImportOptions(ranks=8, nodes=1, bytes=1.0))
        except InputError:
            return
        for line in result.lines:
            kind = Header if isinstance(line, Header) else Record
            assert kind.model_validate_json(line.model_dump_json()) == line


@given(data=st.binary(max_size=200))
def test_no_bytes_crash_it(data: bytes) -> None:
    survives(data)


@given(text=st.text(max_size=300))
def test_no_text_crashes_it(text: str) -> None:
    survives(text.encode("utf-8", "surrogatepass"))


@given(lines=LINES, before=st.sampled_from(["", TABLE, log(), devices(8, 4) + TABLE]))
def test_no_log_crashes_it(lines: str, before: str) -> None:
    survives((before + lines).encode(), "all_reduce.log")


@given(
    text=st.just(log()),
    start=st.integers(0, 2000),
    end=st.integers(0, 2000),
    put=st.text(max_size=9),
)
def test_no_damage_to_a_log_crashes_it(text: str, start: int, end: int, put: str) -> None:
    survives((text[:start] + put + text[start + end :]).encode("utf-8", "surrogatepass"))


@given(header=HEADERS, rows=st.lists(st.lists(CELLS, max_size=14), max_size=4))
def test_no_table_crashes_it(header: str, rows: list[list[str]]) -> None:
    lines = [header, *(",".join(row) for row in rows)]
    survives("\n".join(lines).encode("utf-8", "surrogatepass"), "all_reduce_1GB.csv")


@given(events=st.lists(JSON, max_size=6), frame=JSON, cut=st.integers(0, 60))
def test_no_trace_crashes_it(events: list[object], frame: object, cut: int) -> None:
    text = json.dumps({"deviceProperties": frame, "traceEvents": events, "distributedInfo": frame})
    survives(text[: len(text) - cut].encode(), "t.json")


@given(results=JSON, config=JSON)
def test_no_json_of_a_benchmark_crashes_it(results: object, config: object) -> None:
    survives(json.dumps({"config": config, "results": results}).encode(), "r.json")
    survives(
        json.dumps({"results": [results], "config": config, "args": config}).encode(), "r.json"
    )
    survives(json.dumps([{"size": 8, "time": 1, "inPlace": 0, "x": results}, results]).encode())


@given(
    ranks=st.integers(2, 64),
    rates=st.lists(st.floats(1, 400), min_size=1, max_size=5),
    collective=st.sampled_from([Collective.ALL_REDUCE, Collective.ALL_GATHER]),
)
def test_ranks_are_found_again_from_what_was_printed(
    ranks: int, rates: list[float], collective: Collective
) -> None:
    factor = bus_factor(collective, ranks)
    samples = [
        Sample(line=1, bytes=1e9, time=Printed(value=1e-3, slack=1e-9), algbw=_rate(rate),
               busbw=_rate(rate * factor))
        for rate in rates
    ]  # fmt: skip
    assert ranks_by_factor(collective, samples) in (ranks, None)


def _rate(gigabytes: float) -> Printed:
    number = printed(f"{gigabytes:.2f}")
    assert number is not None
    return number.times(1e9)
