"""Workers that are forked from a process which has read all they need."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from calibrate.fork_server import ForkServer, start_server
from calibrate.orphans import adopt_orphans
from calibrate.serve_workers import driver_in_use
from calibrate.spawn import Handles
from calibrate.worker_messages import Facts, Job, Message, Task
from calibrate.worker_process import WorkerProcess, start_worker
from tests.calibrate.light_run import WORKER

LATE_SECONDS = 120.0
"""On a machine whose cores are busy with others; all of it takes a second or two."""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="elsewhere workers are new programs"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ForkServer]:
    adopt_orphans()
    started = settled((sys.executable, str(WORKER), str(tmp_path)), tmp_path)
    yield started
    started.close()


def settled(command: Sequence[str], folder: Path) -> ForkServer:
    started = start_server(command, folder / "server.log")
    end = time.monotonic() + LATE_SECONDS
    while not started.settled() and time.monotonic() < end:
        time.sleep(0.01)
    return started


def start(server: ForkServer, folder: Path) -> WorkerProcess:
    job = Job(task=Task(number=0), parent=os.getpid(), start_limit=LATE_SECONDS)
    return start_worker(job, folder / "worker.log", spawn=server.spawn)


def said(worker: WorkerProcess) -> tuple[list[Message], int | None]:
    """Return all that a worker says, and the code that it exits with."""
    found, end = [], time.monotonic() + LATE_SECONDS
    while (code := worker.exit_code()) is None and time.monotonic() < end:
        found += worker.messages()
        time.sleep(0.01)
    return found + worker.messages(), code


def test_a_forked_worker_does_its_job_as_a_child_of_its_supervisor(
    server: ForkServer, tmp_path: Path
) -> None:
    worker = start(server, tmp_path)
    group = os.getpgid(worker.process.pid)
    messages, code = said(worker)
    worker.end()
    assert (server.is_ready, [type(each) for each in messages], code, group) == (
        True,
        [Facts],
        0,
        worker.process.pid,
    )


def test_the_signal_that_ended_a_forked_worker_is_told(server: ForkServer, tmp_path: Path) -> None:
    worker = start(server, tmp_path)
    os.kill(worker.process.pid, signal.SIGKILL)
    assert (said(worker)[1], worker.end()) == (-signal.SIGKILL, True)


def test_what_a_forked_worker_writes_is_in_its_own_log(server: ForkServer, tmp_path: Path) -> None:
    (job, giving), (reading, messages) = os.pipe(), os.pipe()
    with (tmp_path / "worker.log").open("wb") as log:
        child = server.spawn(Handles(job=job, log=log.fileno(), messages=messages), {})
    for handle in (job, giving, reading, messages):
        os.close(handle)
    child.wait()
    logs = [(tmp_path / name).read_text() for name in ("worker.log", "server.log")]
    assert (logs[0].startswith("no job has come"), logs[1]) == (True, "")


def test_workers_are_new_programs_once_the_server_is_gone(
    server: ForkServer, tmp_path: Path
) -> None:
    os.kill(server.process.pid, signal.SIGKILL)
    worker = start(server, tmp_path)
    messages, code = said(worker)
    worker.end()
    assert (server.is_lost, [type(each) for each in messages], code) == (True, [Facts], 0)


def test_a_server_that_cannot_read_what_it_must_is_not_waited_for(tmp_path: Path) -> None:
    broken = settled((sys.executable, "-c", "raise SystemExit('no torch')"), tmp_path)
    broken.close()
    log = (tmp_path / "server.log").read_text()
    assert (broken.is_ready, broken.is_lost, log) == (False, True, "no torch\n")


@pytest.mark.parametrize(
    ("device", "found"),
    [("/dev/nvidia-uvm", "/dev/nvidia-uvm"), ("/dev/kfd", "/dev/kfd"), ("/dev/null", "")],
)
def test_a_driver_that_is_in_use_is_seen_by_its_device_file(
    tmp_path: Path, device: str, found: str
) -> None:
    (tmp_path / "7").symlink_to(device)
    assert driver_in_use(tmp_path) == found
