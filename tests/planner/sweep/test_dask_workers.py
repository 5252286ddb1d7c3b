"""A real Dask cluster on this machine: the same rows, whoever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from planner.sweep.cases import cases_of
from planner.sweep.dask_workers import dask_rows
from planner.sweep.row import Outcome
from planner.sweep.run import Workers, run_cases
from simulator.errors import InputError
from tests.planner.sweep.light import Light, echo, marked, workers_of
from tests.planner.sweep.sweeps import sweep

distributed = pytest.importorskip("distributed", reason="needs traincast[sweep]")
_WORKERS = 2
_START_SECONDS = 60.0
_ROOT = Path(__file__).resolve().parents[3]
_SMALL = ("--nthreads", "1", "--no-dashboard", "--memory-limit", "0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A scheduler and its workers, each a process of this test."""

    address: str
    workers: list[subprocess.Popen[bytes]]

    def add_worker(self) -> None:
        """Start one more."""
        self.workers.append(_start("dask_worker", self.address, "--no-nanny", *_SMALL))

    def fill(self) -> None:
        """Start what lacks to two workers, and wait for them."""
        while sum(worker.poll() is None for worker in self.workers) < _WORKERS:
            self.add_worker()
        until(lambda: self.threads() == _WORKERS)

    def threads(self) -> int:
        """Return the threads of all workers that the scheduler knows."""
        with distributed.Client(self.address, set_as_default=False) as client:
            return sum(client.ncores().values())


@pytest.fixture(name="cluster", scope="module")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    place = tmp_path_factory.mktemp("dask") / "scheduler.json"
    words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(place))
    scheduler = _start("dask_scheduler", *words)
    workers: list[subprocess.Popen[bytes]] = []
    try:
        cluster = Cluster(address=_address(place), workers=workers)
        for _ in range(_WORKERS):
            cluster.add_worker()
        yield cluster
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait(timeout=10)


def test_a_cluster_gives_the_rows_of_one_process_and_a_sweep_goes_on_there(
    cluster: Cluster, tmp_path: Path
) -> None:
    cases = cases_of(sweep({"cluster.nodes": [1, 2], "job.precision": ["bf16", "fp4"]}))
    alone = run_cases(cases, workers=Workers(jobs=1))
    run_cases(cases[:1], workers=Workers(jobs=1), folder=tmp_path)
    found = run_cases(cases, workers=Workers(scheduler=cluster.address), folder=tmp_path)
    assert (found.rows, found.kept) == (alone.rows, 1)
    assert [row.outcome for row in found.rows] == [Outcome.OK, Outcome.REFUSED] * 2


def test_a_killed_worker_loses_no_row(cluster: Cluster, tmp_path: Path) -> None:
    cases: Any = [Light(number=number, folder=str(tmp_path)) for number in range(40)]
    work: Any = echo
    found = {}
    for number, row in dask_rows(cases, work, cluster.address):
        if not found:
            os.kill(cluster.workers[0].pid, signal.SIGKILL)
        found[number] = row
    cluster.add_worker()
    assert found == dict(map(echo, cases))


def test_a_result_that_dies_with_its_worker_is_computed_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.fill()
    cases: Any = [Light(number=number, folder=str(tmp_path)) for number in range(8)]
    work: Any = marked
    found: dict[int, Any] = {}
    lost = -1
    for number, row in dask_rows(cases, work, cluster.address):
        if not found:
            # All that was handed out, two a worker, is done, and is in the memory of its worker.
            until(lambda: len(workers_of(tmp_path)) == 2 * _WORKERS)
            lost, (pid,) = next(item for item in workers_of(tmp_path).items() if item[0] != number)
            os.kill(pid, signal.SIGKILL)
            until(lambda: cluster.threads() == _WORKERS - 1)
        found[number] = row
    assert found == dict(map(echo, cases))
    assert len(workers_of(tmp_path)[lost]) > 1


def test_nothing_at_the_address_is_said_so() -> None:
    with pytest.raises(InputError, match="no Dask scheduler answers there"):
        list(dask_rows([], echo_never, "tcp://127.0.0.1:9", connect=1.0))


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + _START_SECONDS
    while not holds():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.05)


def echo_never(case: object) -> Any:
    """Never called."""
    raise AssertionError


def _start(program: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.{program}", *words],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _address(place: Path) -> str:
    """Return the address that a scheduler has written to a file, once it has."""
    import json

    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        try:
            return str(json.loads(place.read_text())["address"])
        except (OSError, ValueError):
            time.sleep(0.05)
    raise AssertionError("the scheduler did not start")
