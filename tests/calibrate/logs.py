"""Logs as nccl-tests prints them, with times that can be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrate.import_options import Imported, ImportOptions
from calibrate.importing import import_file
from calibrate.records import Record

HEADER = """\
# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1024 maxBytes 4096 step: 2(factor) iters: 20 validation: 1 graph: 0
#
# Using devices
"""
TABLE = """\
#
#                                               out-of-place                in-place
#    size       count   type redop root   time  algbw  busbw #wrong   time  algbw  busbw #wrong
#     (B)  (elements)                     (us) (GB/s) (GB/s)          (us) (GB/s) (GB/s)
"""
FOOTER = "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1.5\n#\n"


def devices(ranks: int, per_node: int, gpu: str = "NVIDIA H100 80GB HBM3") -> str:
    """The list of ranks of nccl-tests 2.x."""
    return "".join(
        f"#  Rank {rank:2d} Group  0 Pid {4000 + rank:6d} on node{rank // per_node} device"
        f" {rank % per_node:2d} [0000:{rank % per_node:02x}:00] {gpu}\n"
        for rank in range(ranks)
    )


def row(size: int, microseconds: float, factor: float, wrong: str = "0") -> str:
    """One row of an all-reduce of floats, in place twice as slow as out of place."""
    cells = []
    for time in (microseconds, 2 * microseconds):
        rate = size / time / 1e3
        cells.append(f"{time:9.2f} {rate:7.2f} {rate * factor:7.2f} {wrong:>6}")
    return f"{size:12d} {size // 4:13d}     float     sum      -1 {''.join(cells)}\n"


def log(ranks: int = 8, per_node: int = 8, sizes: Sequence[int] = (2**20, 2**21, 2**22)) -> str:
    """An all-reduce that moves 10 GB/s: 1 MiB in 104.86 us."""
    factor = 2 * (ranks - 1) / ranks
    rows = "".join(row(size, size / 1e4, factor) for size in sizes)
    return HEADER + devices(ranks, per_node) + TABLE + rows


def imported(folder: Path, text: str | bytes, name: str = "run.log", **options: object) -> Imported:
    """Import a text as a file."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return import_file(path, ImportOptions(**options))  # type: ignore[arg-type]


def times(result: Imported) -> dict[tuple[float, bool | None], float | None]:
    """Seconds by size and place."""
    return {_key(record): record.seconds for record in result.records}


def _key(record: Record) -> tuple[float, bool | None]:
    assert record.point.what == "collective"
    return record.point.bytes, record.point.in_place
