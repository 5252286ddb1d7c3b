"""A small result file of each kind, written by the verbs themselves, once a session."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from calibrate.records import Record
from reports.result_files import ResultKind
from tests.calibrate.measured import (
    all_reduce,
    copy,
    gemm,
    pair,
    record,
    rejected,
    step,
    write_folder,
)
from tests.traincast.command_line import run

_STEP = """
title = "GPT-2 <b>small</b>"
model = "gpt2"
[cluster]
profile = "dgx-a100-80gb"
nodes = 1
[job]
global_batch_size = 64
seq_length = 1024
tokens = 1_000_000_000
[search]
tp = [1, 2]
pp = [1]
"""
_LAYOUT = """
[layout]
pp = 2
micro_batch_size = 4
recompute = "full"
"""
_RUN = """
[run]
replications = 20
price = 2.0
[run.checkpoint]
write_bandwidth = "1 GB/s"
[run.failures]
rates = ["opt-175b"]
"""
_SWEEP = """
[sweep]
scenario = "scenario.toml"
what = "estimate"
[sweep.over]
"cluster.nodes" = [1, 2]
"""
_ROWS = """id,model,hardware,gpus,gpus_per_node,gpu_mem_gb,framework,params_b,layers,hidden,\
ffn_hidden,ffn_matrices,heads,kv_heads,vocab,seq_len,precision,global_batch,micro_batch,tp,pp,dp,zero_stage,\
recompute,optimizer,status,step_time_s,completeness
a,GPT 1.7B,NVIDIA A100 SXM,32,8,80,Megatron-LM,1.7,24,2304,9216,2,24,24,51200,2048,fp16,512,16,1,1,\
32,0,full,Adam,ok,3.5,A
b,GPT 1.7B,NVIDIA A100 SXM,32,8,80,Megatron-LM,1.7,24,2304,9216,2,24,24,51200,2048,fp16,256,8,1,1,\
32,0,full,Adam,ok,2.1,A
"""
_VERBS = {
    ResultKind.STEP: ("simulate", "scenario.toml"),
    ResultKind.PLAN: ("plan", "plan.toml", "--quiet"),
    ResultKind.EXPLAIN: ("explain", "plan.toml", "--quiet", "--layout-key", "tp=2"),
    ResultKind.GOODPUT: ("goodput", "run.toml"),
    ResultKind.COMPARE: ("compare", "scenario.toml", "other.toml", "--layout", "--quiet"),
    ResultKind.SWEEP: ("sweep", "sweep.toml", "--quiet"),
    ResultKind.VALIDATION: ("validate", "rows.csv"),
    ResultKind.CALIBRATION: ("calibrate report", "measured", "--profile", "dgx-h100"),
}
TOO_FAST = "bus bandwidth 500 GB/s is more than 1.1 x the line rate of 450 GB/s"
"""Why an imported point does not count."""
MADE = tuple(_VERBS)
"""The kinds that a verb writes by itself; a trace comparison needs a trace."""


def made(kind: ResultKind, folder: Path) -> Path:
    """Return a copy of the result file of a kind in a folder."""
    path = folder / f"{kind}.json"
    path.write_text(_made(kind))
    return path


@cache
def _made(kind: ResultKind) -> str:
    folder = Path(mkdtemp(prefix="results."))
    try:
        write_inputs(folder)
        verb, *words = _VERBS[kind]
        words = [str(folder / word) if (folder / word).exists() else word for word in words]
        done = run(*verb.split(), *words, "--json", str(folder / "result.json"))
        assert done.code == 0, done.err
        return (folder / "result.json").read_text()
    finally:
        shutil.rmtree(folder)


def write_inputs(folder: Path) -> None:
    """Write small input files for the verbs that read some."""
    files = {
        "scenario.toml": _STEP + _LAYOUT,
        "other.toml": _STEP + _LAYOUT.replace("pp = 2", "pp = 1"),
        "plan.toml": _STEP,
        "run.toml": _STEP + _LAYOUT + _RUN,
        "sweep.toml": _SWEEP,
        "rows.csv": _ROWS,
    }
    for name, text in files.items():
        (folder / name).write_text(text)
    write_folder(folder / "measured", *_measured())


def _measured() -> list[Record]:
    """Return one of each kind of point that a report shows otherwise."""
    return [
        record(gemm(), 3e-4),
        record(all_reduce(2**20), 3e-5),
        record(copy(2**26), 4e-5),
        record(step(), 0.06),
        *(record(pair(0, other, 2**26), 1e-3 * other) for other in range(1, 4)),
        rejected(all_reduce(2**22), TOO_FAST),
    ]
