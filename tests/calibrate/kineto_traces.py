"""Small device traces by hand: times in microseconds."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]
GEMM = "nvjet_tst_192x192_64x4_1x2_h_bz_coopA_TNT"
NORM = "void at::native::vectorized_elementwise_kernel<4>"
ADAM = "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def kernel(name: str, ts: float, dur: float, stream: int = 7, **args: Any) -> Event:
    """Return work of the device."""
    found = {"stream": stream, **args}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": ts,
        "dur": dur,
        "args": found,
    }


def launch(number: int, ts: float) -> Event:
    """Return the call that asked for the work of a correlation number."""
    args = {"correlation": number}
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 1,
        "tid": 1,
        "ts": ts,
        "dur": 1,
        "args": args,
    }


def mark(name: str, ts: float, dur: float) -> Event:
    """Return a range that the program marked."""
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": ts,
        "dur": dur,
    }


def write_trace(path: Path, events: list[Any], rank: int | None = 3, **said: Any) -> Path:
    """Write a trace, packed where its name says so; `said` stands in its `distributedInfo`."""
    info = {**said, **({} if rank is None else {"rank": rank})}
    frame = {"distributedInfo": info} if info else {}
    text = json.dumps({**frame, "traceEvents": events})
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path
