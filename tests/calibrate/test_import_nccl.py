"""Logs of nccl-tests in all the shapes in which they reach us."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from calibrate.import_options import Imported
from calibrate.points import CollectivePoint, GroupKind, Timing
from calibrate.records import Header, Status
from simulator.errors import InputError
from simulator.parallel.groups import Collective
from tests.calibrate.logs import FOOTER, HEADER, TABLE, devices, imported, log, row, times

PLAIN = {
    (2**20, False): 104.86e-6,
    (2**20, True): 209.72e-6,
    (2**21, False): 209.72e-6,
    (2**21, True): 419.43e-6,
    (2**22, False): 419.43e-6,
    (2**22, True): 838.86e-6,
}

LEFT = "     1048576        262144     float     sum      -1"


def header(result: Imported) -> Header:
    line = result.lines[0]
    assert isinstance(line, Header)
    return line


def notes(result: Imported) -> str:
    return "\n".join(map(str, result.notes))


def test_a_plain_log_becomes_one_record_a_size_and_place(tmp_path: Path) -> None:
    result = imported(tmp_path, log())
    assert times(result) == pytest.approx(PLAIN)
    assert {record.status for record in result.records} == {Status.OK}
    assert not result.notes


def test_the_machine_is_read_from_the_list_of_ranks(tmp_path: Path) -> None:
    found = header(imported(tmp_path, log(ranks=16, per_node=8))).fingerprint
    assert found.accelerator == "NVIDIA H100 80GB HBM3"
    assert (found.world_size, found.nodes, found.accelerators_per_node) == (16, 2, 8)
    assert (found.backend, found.library) == ("nccl", "2.28.9")


def test_a_point_names_its_group(tmp_path: Path) -> None:
    point = imported(tmp_path, log(ranks=16, per_node=8)).records[0].point
    assert point == CollectivePoint(
        collective=Collective.ALL_REDUCE,
        ranks=16,
        nodes=2,
        bytes=2.0**20,
        dtype="float32",
        timing=Timing.DEVICE,
        group=GroupKind.FIRST,
        in_place=False,
    )


def test_one_rank_a_node_is_said_so(tmp_path: Path) -> None:
    point = imported(tmp_path, log(ranks=4, per_node=1)).records[0].point
    assert isinstance(point, CollectivePoint)
    assert (point.nodes, point.group) == (4, GroupKind.ONE_A_NODE)


def test_an_origin_is_a_file_and_a_line(tmp_path: Path) -> None:
    text = log()
    line = text[: text.index("1048576 ")].count("\n") + 1
    assert imported(tmp_path, text).records[0].origin == f"run.log:{line}"


def _each_line(change: Callable[[int, str], str]) -> str:
    return "\n".join(change(i, line) for i, line in enumerate(log().split("\n"))) + "\n"


DISGUISES = {
    "CRLF": log().replace("\n", "\r\n"),
    "tabs": _each_line(lambda _, line: "\t".join(line.split()) if line[:1] == " " else line),
    "byte order mark": "\ufeff" + log(),
    "open mpi tags": _each_line(lambda _, line: f"[1,0]<stdout>:{line}"),
    "open mpi 5 tags": _each_line(lambda _, line: f"[node0:4711,0]<stdout>: {line}"),
    "intel mpi labels": _each_line(lambda _, line: f"[0] {line}"),
    "srun labels": _each_line(lambda _, line: f"0: {line}"),
    "two digit srun labels": _each_line(lambda _, line: f" 0: {line}"),
    "pdsh labels": _each_line(lambda _, line: f"gpu-node01: {line}"),
    "kubectl prefix": _each_line(lambda _, line: f"[pod/nccl-launcher-x2x/main] {line}"),
    "docker compose": _each_line(lambda _, line: f"launcher-1  | {line}"),
    "ISO times": _each_line(lambda i, line: f"2025-03-01T12:00:{i % 60:02d}.123456Z {line}"),
    "bracketed times": _each_line(lambda i, line: f"[2025-03-01 12:00:{i % 60:02d}] {line}"),
    "bare times": _each_line(lambda i, line: f"12:00:{i % 60:02d} {line}"),
    "syslog": _each_line(lambda i, line: f"Mar  1 12:00:{i % 60:02d} node0 nccl[123]: {line}"),
    "times and labels": _each_line(lambda i, line: f"12:00:{i % 60:02d} 0: {line}"),
    "colours": _each_line(lambda _, line: f"\x1b[32m{line}\x1b[0m"),
    "quoted mail": _each_line(lambda _, line: f"> {line}"),
    "indented": _each_line(lambda _, line: f"        {line}"),
    "markdown": "## Results\n```\n" + log() + "```\n1. 8 GPUs are fast\n",
    "syslog without a process": _each_line(
        lambda i, line: f"Mar  1 12:00:{i % 60:02d} node0 nccl: {line}"
    ),
    "decimal commas": log().replace(".", ","),
    "stray words": log().replace(
        "     2097152", "node0:1:1 [0] NCCL INFO comm 0x1 rank 0 nranks 8\n     2097152"
    ),
}


@pytest.mark.parametrize("disguise", DISGUISES)
def test_what_others_put_around_lines_does_not_matter(tmp_path: Path, disguise: str) -> None:
    result = imported(tmp_path, DISGUISES[disguise])
    assert times(result) == pytest.approx(PLAIN)
    assert header(result).fingerprint.world_size == 8


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_any_common_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    assert times(imported(tmp_path, log().encode(encoding))) == pytest.approx(PLAIN)


def test_thousands_separators_are_read(tmp_path: Path) -> None:
    text = log().replace("1048576 ", "1,048,576 ").replace("2097152 ", "2_097_152 ")
    assert times(imported(tmp_path, text)) == pytest.approx(PLAIN)


def test_scientific_notation_is_read_with_its_precision(tmp_path: Path) -> None:
    line = f"{LEFT} 1.0e+05 0.01 0.02 0 1.1e+05 0.01 0.02 0\n"
    result = imported(tmp_path, HEADER + devices(8, 8) + TABLE + line)
    assert times(result) == pytest.approx({(2**20, False): 0.1, (2**20, True): 0.11})
    assert {record.status for record in result.records} == {Status.OK}


def test_not_available_is_no_wrong_element(tmp_path: Path) -> None:
    body = row(2**20, 104.86, 1.75, wrong="N/A")
    result = imported(tmp_path, HEADER + devices(8, 8) + TABLE + body)
    assert [record.status for record in result.records] == [Status.OK] * 2


def test_old_columns_are_read(tmp_path: Path) -> None:
    text = """\
# nThread 1 nGpus 4 minBytes 1024 maxBytes 1024 iters: 20 validation: 1
# Using devices
#   Rank  0 Pid   1 on    a device  0 [0x00] Tesla V100
#   Rank  1 Pid   1 on    a device  1 [0x00] Tesla V100
#   Rank  2 Pid   1 on    a device  2 [0x00] Tesla V100
#   Rank  3 Pid   1 on    a device  3 [0x00] Tesla V100
#                                             out-of-place                       in-place
#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)             (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     4194304        262144   float    41.94  100.00   75.00  0e+00    83.89   50.00   37.50  0e+00
"""
    result = imported(tmp_path, text, name="all_gather.txt")
    assert times(result) == pytest.approx({(2**22, False): 41.94e-6, (2**22, True): 83.89e-6})
    assert [record.status for record in result.records] == [Status.OK] * 2


def test_the_first_version_counts_milliseconds(tmp_path: Path) -> None:
    text = """\
#                                          out-of-place                in-place
#    bytes        N   type   op    time  algbw  busbw    res    time  algbw  busbw    res
#      (B)  (elements)             (ms) (GB/s) (GB/s)           (ms) (GB/s) (GB/s)
  10000000  2500000  float  sum   1.000  10.00  15.00  0e+00   2.000   5.00   7.50  0e+00
"""
    result = imported(tmp_path, text, name="all_reduce.log", ranks=4, nodes=1)
    assert times(result) == {(1e7, False): 1e-3, (1e7, True): 2e-3}
    assert [record.status for record in result.records] == [Status.OK] * 2


def test_a_blank_column_is_skipped(tmp_path: Path) -> None:
    text = log().replace(
        "Collective test starting: all_reduce", "Collective test starting: alltoall"
    )
    body = "1048576 32768 float     104.86 10.00 8.75 N/A 104.86 10.00 8.75 N/A\n"
    head = text[: text.index("     1048576")]
    found = imported(tmp_path, head + body).records
    assert [(r.seconds, r.status) for r in found] == [(pytest.approx(104.86e-6), Status.OK)] * 2


def test_only_in_place_results_stay_in_place(tmp_path: Path) -> None:
    body = LEFT + " " * 40 + "  104.86   10.00   17.50       0\n"
    result = imported(tmp_path, HEADER + devices(8, 8) + TABLE + body)
    assert times(result) == {(2**20, True): pytest.approx(104.86e-6)}


def test_minimum_and_maximum_of_each_iteration_are_no_times(tmp_path: Path) -> None:
    block = "time algbw busbw #wrong i_min i_max i_p99 i_cv%"
    units = "(us) (GB/s) (GB/s) (us) (us) (us) (%)"
    cells = "104.86 10.00 17.50 0 90.1 120.5 119.9 3.2"
    table = f"# size count type redop root {block} {block}\n# (B) (elements) {units} {units}\n"
    body = f"{LEFT} {cells} {cells}\n"
    result = imported(tmp_path, HEADER + devices(8, 8) + table + body)
    assert list(times(result).values()) == pytest.approx([104.86e-6] * 2)


def test_times_of_day_at_the_end_of_rows_are_no_results(tmp_path: Path) -> None:
    text = log().replace("busbw #wrong\n", "busbw #wrong           timestamp\n")
    text = text.replace("(GB/s) (GB/s)\n", "(GB/s) (GB/s)  %Y-%m-%d %H:%M:%S\n")
    text = "\n".join(
        line + "  2025-03-01 12:00:00" if line[:1] == " " else line for line in text.split("\n")
    )
    assert times(imported(tmp_path, text)) == pytest.approx(PLAIN)


def test_broken_rows_are_told_by_line_and_the_rest_is_kept(tmp_path: Path) -> None:
    lines = log().split("\n")
    place = next(i for i, line in enumerate(lines) if line.startswith("     2097152"))
    lines[place] = lines[place][:60]
    result = imported(tmp_path, "\n".join(lines))
    kept = {key: value for key, value in PLAIN.items() if key[0] != 2**21}
    assert times(result) == pytest.approx(kept)
    assert f"line {place + 1}: left out" in notes(result)


def test_commas_between_the_columns_are_spaces(tmp_path: Path) -> None:
    text = "size;time;algbw;busbw\n1000000;100.0;10.00;17.50\n2000000;200.0;10.00;17.50\n"
    result = imported(tmp_path, text, name="all_reduce.csv", nodes=1)
    expected = {(1e6, None): 1e-4, (2e6, None): 2e-4}
    assert times(result) == pytest.approx(expected)


def test_what_stands_before_a_second_run_is_not_said_of_the_first(tmp_path: Path) -> None:
    second = "# gpu=B200 gpus=8 nodes=1 nccl=2.30.7\n" + headless()
    headers = [h for h in imported(tmp_path, log() + second).lines if isinstance(h, Header)]
    assert [(h.fingerprint.accelerator, h.fingerprint.library) for h in headers] == [
        ("NVIDIA H100 80GB HBM3", "2.28.9"),
        ("B200", "2.30.7"),
    ]


def test_rows_of_no_bytes_are_left_out_in_words(tmp_path: Path) -> None:
    rows = "0 0 float sum -1 9.00 0.00 0.00 0 9.00 0.00 0.00 0\n" * 2 + row(2**20, 104.86, 1.75)
    result = imported(tmp_path, HEADER + devices(8, 8) + TABLE + rows)
    assert {size for size, _ in times(result)} == {2**20}
    assert notes(result).count("left out: rows of 0 bytes") == 1


def test_every_broken_row_has_its_line(tmp_path: Path) -> None:
    text = log() + "8388608 float\n" * 3
    last = text.count("\n")
    told = notes(imported(tmp_path, text))
    assert all(f"line {line}: left out" in told for line in (last - 2, last - 1, last))


def test_a_test_that_was_aborted_keeps_what_it_measured(tmp_path: Path) -> None:
    text = (
        log(sizes=(2**20, 2**21))
        + "     4194304       10485\n"
        + "node0: Test NCCL failure all_reduce.cu:44 'unhandled cuda error'\n"
    )
    result = imported(tmp_path, text)
    assert {key for key, _ in times(result)} == {2**20, 2**21}
    assert "Test NCCL failure" in notes(result)


def test_several_runs_in_one_file_are_kept_apart(tmp_path: Path) -> None:
    other = log(ranks=4, per_node=4).replace("all_reduce_perf", "all_reduce_perf")
    result = imported(tmp_path, log() + FOOTER + other)
    found = [line for line in result.lines if isinstance(line, Header)]
    assert [line.fingerprint.world_size for line in found] == [8, 4]
    assert len(result.records) == 12


def test_repeats_of_a_point_become_its_median(tmp_path: Path) -> None:
    head = HEADER + devices(8, 8) + TABLE
    rows = "".join(row(2**20, time, 1.75) for time in (100.0, 102.0, 104.0))
    result = imported(tmp_path, head + rows)
    first = result.records[0]
    assert first.seconds == pytest.approx(102e-6)
    assert (first.samples, first.spread) == (3, pytest.approx(2 / 102))


def test_repeats_that_scatter_are_noisy(tmp_path: Path) -> None:
    head = HEADER + devices(8, 8) + TABLE
    rows = "".join(row(2**20, time, 1.75) for time in (100.0, 130.0, 190.0))
    result = imported(tmp_path, head + rows)
    assert {record.status for record in result.records} == {Status.NOISY}


def test_a_sweep_that_begins_again_is_a_repeat(tmp_path: Path) -> None:
    text = log()
    rows = text[text.index("     1048576") :]
    assert {record.samples for record in imported(tmp_path, text + rows).records} == {2}


def test_wrong_elements_reject_a_point(tmp_path: Path) -> None:
    body = row(2**20, 104.86, 1.75, wrong="12")
    records = imported(tmp_path, HEADER + devices(8, 8) + TABLE + body).records
    assert {(r.status, r.reason) for r in records} == {
        (Status.REJECTED, "the benchmark found 12 wrong elements")
    }


def test_a_row_cut_after_its_first_half_is_no_row(tmp_path: Path) -> None:
    body = f"{LEFT} 104.86 10.00 17.50 0\n"
    result = imported(tmp_path, log(sizes=(2**21,)) + body)
    assert {size for size, _ in times(result)} == {2**21}


@pytest.mark.parametrize("time", ["0.00", "-5.00"])
def test_an_impossible_time_is_rejected(tmp_path: Path, time: str) -> None:
    body = f"{LEFT} {time} 10.00 17.50 0 104.86 10.00 17.50 0\n"
    records = imported(tmp_path, HEADER + devices(8, 8) + TABLE + body).records
    assert [(r.status, r.seconds) for r in records] == [
        (Status.REJECTED, None),
        (Status.OK, pytest.approx(104.86e-6)),
    ]
    assert "impossible" in records[0].reason


def test_a_bandwidth_that_contradicts_the_ranks_is_rejected_with_the_arithmetic(
    tmp_path: Path,
) -> None:
    text = log(ranks=8).replace(devices(8, 8), devices(4, 4))
    found = imported(tmp_path, text).records
    assert {record.status for record in found} == {Status.REJECTED}
    assert found[0].reason == (
        "busbw: 1048576 B x 1.5 / 104.86 us is 15 GB/s, the log says 17.5 GB/s;"
        " it fits 8 ranks, not 4"
    )


def test_a_size_of_one_rank_s_part_is_recognised(tmp_path: Path) -> None:
    table = TABLE.replace("redop root", "")
    head = HEADER.replace("all_reduce", "all_gather") + devices(4, 4) + table
    body = "1048576 262144 float 104.86 40.00 30.00 0 104.86 40.00 30.00 0\n"
    found = imported(tmp_path, head + body).records[0]
    assert found.status is Status.REJECTED
    assert found.reason == (
        "algbw: 1048576 B / 104.86 us is 10 GB/s, the log says 40 GB/s;"
        " it fits 4 x the size: the column counts the part of one rank"
    )


def test_a_size_that_is_not_that_of_its_elements_is_rejected(tmp_path: Path) -> None:
    found = imported(tmp_path, log().replace("float ", "half  ")).records[0]
    assert found.status is Status.REJECTED
    assert found.reason == "262144 elements of float16 are 524288 B, not 1048576"


def test_the_algorithm_bandwidth_of_old_gathers_is_no_contradiction(tmp_path: Path) -> None:
    head = HEADER.replace("all_reduce", "all_gather") + devices(4, 4)
    head += TABLE.replace("redop root", "").replace("#wrong", "error")
    body = "1000000 62500 float 100.00 7.50 7.50 0e+00 100.00 7.50 7.50 0e+00\n"
    found = imported(tmp_path, head + body).records
    assert [record.status for record in found] == [Status.OK] * 2


@pytest.mark.parametrize(("error", "status"), [("5e-07", Status.OK), ("2e+00*", Status.REJECTED)])
def test_a_difference_is_wrong_where_it_is_marked(
    tmp_path: Path, error: str, status: Status
) -> None:
    head = HEADER + devices(8, 8) + TABLE.replace("#wrong", "error")
    body = f"{LEFT} 104.86 10.00 17.50 {error} 104.86 10.00 17.50 {error}\n"
    assert {record.status for record in imported(tmp_path, head + body).records} == {status}


def test_a_command_over_several_lines_is_one(tmp_path: Path) -> None:
    command = "$ mpirun --hostfile hosts \\\n  -np 8 -npernode 4 \\\n  ./all_reduce_perf -g 1\n"
    point = imported(tmp_path, command + headless()).records[0].point
    assert isinstance(point, CollectivePoint)
    assert (point.ranks, point.nodes) == (8, 2)


def test_variables_of_one_command_are_not_those_of_the_next(tmp_path: Path) -> None:
    one = f"$ NCCL_P2P_DISABLE=1 ./all_reduce_perf -g 8\n{headless()}"
    other = f"$ CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7 ./all_reduce_perf -g 8\n{headless()}"
    headers = [h for h in imported(tmp_path, one + other).lines if isinstance(h, Header)]
    assert [h.fingerprint.environment for h in headers] == [
        {"NCCL_P2P_DISABLE": "1"},
        {"CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"},
    ]


def test_processes_without_mpi_are_recognised_by_their_ranks(tmp_path: Path) -> None:
    text = HEADER + devices(1, 1) + HEADER + devices(1, 1).replace("node0", "node1") + TABLE
    with pytest.raises(InputError, match="one rank has nobody to talk to"):
        imported(tmp_path, text + TABLE + row(2**20, 104.86, 0.0))


def test_zero_bus_bandwidth_is_rejected(tmp_path: Path) -> None:
    body = f"{LEFT} 104.86 10.00 0.00 0 104.86 10.00 17.50 0\n"
    found = imported(tmp_path, HEADER + devices(8, 8) + TABLE + body).records
    assert [record.status for record in found] == [Status.REJECTED, Status.OK]
    assert "the log says 0 GB/s" in found[0].reason


def test_a_cliff_is_flagged(tmp_path: Path) -> None:
    rows = row(2**20, 100, 1.75) + row(2**21, 20000, 1.75) + row(2**22, 400, 1.75)
    result = imported(tmp_path, HEADER + devices(8, 8) + TABLE + rows)
    rejected = [r.point for r in result.records if r.status is Status.REJECTED]
    assert [p.bytes for p in rejected if isinstance(p, CollectivePoint)] == [2**21, 2**21]
    assert "2 of 6 points are rejected" in notes(result)


def test_more_than_twice_the_line_rate_is_flagged(tmp_path: Path) -> None:
    result = imported(tmp_path, log(), line_rate=8e9)
    reasons = {r.reason for r in result.records if r.status is Status.REJECTED}
    assert "bus bandwidth 17.5 GB/s is more than 2 x the line rate of 8 GB/s" in reasons


def test_the_line_rate_of_a_shipped_machine_is_known(tmp_path: Path) -> None:
    rows = row(2**30, 500, 1.75) + row(2**31, 1000, 1.75)
    result = imported(tmp_path, HEADER + devices(8, 8) + TABLE + rows)
    assert {r.status for r in result.records} == {Status.REJECTED}
    assert "the line rate of 450 GB/s" in result.records[0].reason


def test_rows_that_are_missing_show_in_the_mean(tmp_path: Path) -> None:
    result = imported(tmp_path, log() + FOOTER)
    assert "the log's average bus bandwidth is 1.5 GB/s, that of its rows 13.12" in notes(result)


def test_one_thread_for_all_gpus_is_flagged(tmp_path: Path) -> None:
    result = imported(tmp_path, log().replace("nThread 1 nGpus 1", "nThread 1 nGpus 8"))
    assert "one thread launches on all 8 GPUs" in notes(result)


def test_times_of_the_cpu_are_no_times_of_the_collective(tmp_path: Path) -> None:
    text = log().replace(" time ", " cputime ")
    found = imported(tmp_path, text).records
    assert {r.status for r in found} == {Status.REJECTED}
    assert "CPU times" in found[0].reason


def test_blocking_calls_are_isolated(tmp_path: Path) -> None:
    said = "# Blocking Enabled: wait for completion and barrier after each collective \n"
    text = log().replace("#\n# Using", said + "# Using")
    point = imported(tmp_path, text).records[0].point
    assert isinstance(point, CollectivePoint)
    assert point.timing is Timing.ISOLATED


def test_variables_are_kept(tmp_path: Path) -> None:
    command = "mpirun -np 8 -x NCCL_ALGO=Tree -x NCCL_PROTO=LL ./build/all_reduce_perf -g 1\n"
    found = header(imported(tmp_path, command + log())).fingerprint
    assert found.environment == {"NCCL_ALGO": "Tree", "NCCL_PROTO": "LL"}


def test_each_process_that_printed_a_table_is_read_for_itself(tmp_path: Path) -> None:
    one = log(ranks=1, per_node=1).split("\n")
    text = "\n".join(f"{rank}: {line}" for line in one for rank in range(2))
    with pytest.raises(InputError, match="build nccl-tests with MPI=1"):
        imported(tmp_path, text)


def test_lines_of_other_ranks_do_not_disturb(tmp_path: Path) -> None:
    text = "\n".join(f"0: {line}\n1: node1:9:9 [1] NCCL INFO x" for line in log().split("\n"))
    assert times(imported(tmp_path, text)) == pytest.approx(PLAIN)


def test_nodes_of_one_name_are_told_apart_by_their_devices(tmp_path: Path) -> None:
    text = log(ranks=16, per_node=8).replace("on node1", "on node0")
    point = imported(tmp_path, text).records[0].point
    assert isinstance(point, CollectivePoint)
    assert point.nodes == 2


def test_a_split_communicator_is_a_group_a_rail(tmp_path: Path) -> None:
    lines = []
    for line in log(ranks=2, per_node=1).split("\n"):
        if "Rank  0" in line:
            lines += [
                f"#  Rank {rank:2d} Group {rank % 4} Pid {rank} on node{rank // 4}"
                f" device {rank % 4} [0000:00:00] NVIDIA H100"
                for rank in range(8)
            ]
        elif "Rank  1" not in line:
            lines.append(line)
    point = imported(tmp_path, "\n".join(lines)).records[0].point
    assert isinstance(point, CollectivePoint)
    assert (point.ranks, point.nodes, point.group) == (2, 2, GroupKind.RAILS)


def headless(ranks: int = 8) -> str:
    """A table as it is pasted into a bug report: nothing says where it ran."""
    return TABLE + log(ranks).partition(TABLE)[2]


def test_what_is_missing_is_asked_for_by_option(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        imported(tmp_path, headless())
    assert next((p.rule, p.fix) for p in caught.value.problems) == (
        "the number of nodes is not said anywhere",
        "--nodes N, or --ranks-per-node N",
    )


def test_ranks_and_collective_follow_from_the_bandwidths(tmp_path: Path) -> None:
    result = imported(tmp_path, headless(), nodes=1)
    point = result.records[0].point
    assert isinstance(point, CollectivePoint)
    assert (point.collective, point.ranks) == (Collective.ALL_REDUCE, 8)
    assert "8 ranks from busbw / algbw" in notes(result)


def test_the_file_s_name_says_what_the_log_does_not(tmp_path: Path) -> None:
    result = imported(tmp_path, headless(), name="allreduce_h100_2nodes.txt", ranks=8)
    point = result.records[0].point
    assert isinstance(point, CollectivePoint)
    assert (point.collective, point.nodes) == (Collective.ALL_REDUCE, 2)


def test_a_command_line_says_how_many_ranks_and_nodes(tmp_path: Path) -> None:
    command = "$ srun -N2 --ntasks-per-node=4 ./build/all_reduce_perf -b 1M -e 4M -f 2 -g 1\n"
    point = imported(tmp_path, command + headless()).records[0].point
    assert isinstance(point, CollectivePoint)
    assert (point.ranks, point.nodes) == (8, 2)


def test_one_process_with_all_gpus_is_one_node(tmp_path: Path) -> None:
    command = "$ ./build/all_reduce_perf -b 1M -e 4M -f 2 -g 8\n"
    point = imported(tmp_path, command + headless()).records[0].point
    assert isinstance(point, CollectivePoint)
    assert (point.ranks, point.nodes) == (8, 1)


def test_options_that_the_log_contradicts_are_not_used(tmp_path: Path) -> None:
    result = imported(tmp_path, log(), ranks=4, collective=Collective.BROADCAST)
    point = result.records[0].point
    assert isinstance(point, CollectivePoint)
    assert (point.ranks, point.collective) == (8, Collective.ALL_REDUCE)
    assert "--ranks 4 is not used, the log says 8" in notes(result)


def test_collectives_that_are_not_simulated_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="gather is no collective that is simulated"):
        imported(tmp_path, log().replace("all_reduce_perf", "gather_perf"))


def test_a_table_without_a_header_is_read_by_recent_columns(tmp_path: Path) -> None:
    text = log().replace(TABLE, "")
    result = imported(tmp_path, text)
    assert times(result) == pytest.approx(PLAIN)
    assert "no header stands above" in notes(result)


def test_a_log_without_rows_still_names_the_machine(tmp_path: Path) -> None:
    result = imported(tmp_path, HEADER + devices(8, 8))
    assert header(result).fingerprint.world_size == 8
    assert not result.records
    assert "holds no measured row" in notes(result)


@pytest.mark.parametrize("content", ["", "\n\n  \n", "hello world\n", "\0\1\2\3" * 50])
def test_what_is_no_log_is_refused_in_words(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError) as caught:
        imported(tmp_path, content)
    assert str(tmp_path / "run.log") in str(caught.value)
