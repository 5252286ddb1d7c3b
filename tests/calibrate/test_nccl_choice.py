from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from calibrate.batches import Batch, World
from calibrate.nccl_choice import Choice, DebugFile, choice_in, debug_variables
from calibrate.points import CollectivePoint
from calibrate.spawn import executed
from calibrate.worker_messages import Job, Store, Task
from calibrate.worker_process import start_worker
from simulator.parallel.groups import Collective

LINES = """\
n0:52:52 [0] NCCL INFO NCCL_DEBUG_SUBSYS set by environment to TUNING
n0:52:52 [0] NCCL INFO AllReduce: 4096 Bytes -> Algo TREE proto LL channel{Lo..Hi}={0..1}
n0:52:52 [0] NCCL INFO AllGather: 37756928 Bytes -> Algo 1 proto 2 time 2860.208008
n0:52:52 [0] NCCL INFO AllReduce: 268435456 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}
n0:52:52 [0] NCCL INFO AllGather: opCount 6 sendbuff 0x93 recvbuff 0x96 count 23 datatype 7
"""


def test_the_last_call_of_the_collective_counts() -> None:
    assert choice_in(LINES, Collective.ALL_REDUCE) == Choice(algorithm="nvls", protocol="simple")


def test_numbers_of_older_releases_are_named() -> None:
    assert choice_in(LINES, Collective.ALL_GATHER) == Choice(algorithm="ring", protocol="simple")


def test_what_is_not_said_is_not_known() -> None:
    assert choice_in(LINES, Collective.REDUCE_SCATTER) == Choice()
    assert choice_in(LINES, Collective.SEND_RECV) == Choice()


def test_lines_from_before_the_point_do_not_count(tmp_path: Path) -> None:
    log = tmp_path / f"nccl.{socket.gethostname()}.{os.getpid()}"
    log.write_text(LINES)
    environment = {"NCCL_DEBUG_FILE": str(tmp_path / "nccl.%h.%p"), "NCCL_PROTO": "LL128"}
    debug = DebugFile(environment)
    assert debug.choice(Collective.ALL_REDUCE) == Choice(protocol="ll128")
    with log.open("a") as file:
        file.write("n0:1:1 [0] NCCL INFO AllReduce: 64 Bytes -> Algo RING proto LL channel{}\n")
    assert debug.choice(Collective.ALL_REDUCE) == Choice(algorithm="ring", protocol="ll")


def test_what_nccl_is_asked_to_write_is_what_is_read(tmp_path: Path) -> None:
    environment = debug_variables(tmp_path / "collectives-rank0.log", {"PATH": "/bin"})
    debug = DebugFile(environment)
    (tmp_path / f"collectives-rank0.nccl.{os.getpid()}").write_text(LINES)

    assert environment["NCCL_DEBUG"] == "INFO"
    assert environment["NCCL_DEBUG_SUBSYS"] == "TUNING,INIT"
    assert debug.choice(Collective.ALL_REDUCE) != Choice()


@pytest.mark.parametrize("name", ["NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"])
def test_what_the_user_has_set_of_it_stays(name: str) -> None:
    assert debug_variables(Path("rank0.log"), {name: "mine"}) == {}


@pytest.mark.parametrize(("backend", "told"), [("nccl", True), ("gloo", False)])
def test_only_workers_with_nccl_are_told_to_write_their_choices(
    backend: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"):
        monkeypatch.delenv(name, raising=False)
    log = tmp_path / "collectives-rank0.log"
    script = "import os; print('file', os.environ.get('NCCL_DEBUG_FILE'))"

    worker = start_worker(_job(backend), log, spawn=executed((sys.executable, "-c", script)))
    worker.process.wait()
    worker.end()

    assert (str(tmp_path / "collectives-rank0.nccl.%p") in log.read_text()) is told


def _job(backend: str) -> Job:
    point = CollectivePoint(collective=Collective.ALL_REDUCE, ranks=2, nodes=1, bytes=1024)
    batch = Batch(name="collectives", ranks="all", points=(point,), seconds=1, nccl_choice=True)
    return Job(
        task=Task(number=0, backend=backend, batch=batch, todo=(0,)),
        parent=os.getpid(),
        world=World(size=2, local_size=2),
        store=Store(host="localhost", port=1, prefix="test"),
        start_limit=10.0,
    )
