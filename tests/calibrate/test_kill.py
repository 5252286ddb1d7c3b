"""Killed at any moment, a run loses no finished point and leaves no process."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest

from calibrate.journal import JOURNAL, read_journal
from calibrate.points import key_of
from calibrate.records import Record, Status
from tests.calibrate.light_run import forked
from tests.calibrate.processes import alive, left_over

ROOT = Path(__file__).resolve().parents[2]
PLAN = """
[memory_bound]
operators = ["add", "gelu", "layer_norm"]
least = "64 KiB"
most = "64 MiB"
factor = 2
"""
KILLS = 20
SLOWEST = 0.6
"""Seconds after which a victim is killed at the latest, once the run has begun its work."""
END_SECONDS = 60.0

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="processes are looked up in /proc"
)


def plan(folder: Path) -> Path:
    path = folder / "plan.toml"
    path.write_text(PLAN)
    return path


@dataclass(frozen=True)
class Run:
    """A supervisor, forked from a process that has read the program: that takes no time."""

    process: ForkServerProcess
    errors: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        if self.is_alive():
            os.kill(self.pid, number)

    def is_alive(self) -> bool:
        return self.process.is_alive()

    def finish(self) -> tuple[int | None, str]:
        """Return the exit code and what was written to standard error."""
        self.process.join(END_SECONDS)
        return self.process.exitcode, self.errors.read_text() if self.errors.exists() else ""


def start(folder: Path, *words: str, cpu: str = "light") -> Run:
    server = get_context("forkserver")
    server.set_forkserver_preload(["tests.calibrate.light_run"])
    errors = folder / "errors"
    arguments = (str(folder), str(plan(folder)), words, str(errors), cpu)
    process = server.Process(target=forked, args=arguments)
    process.start()
    return Run(process, errors)


def records(folder: Path) -> list[Record]:
    lines = read_journal(folder / JOURNAL).lines
    return [line for line in lines if isinstance(line, Record)]


def worker_of(run: Run, folder: Path, seconds: float = 20.0) -> int | None:
    """Return the process that does a batch's points; None where there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and run.is_alive():
        found = alive(str(folder))
        # A worker that does points has a warden and a child of its own beside it.
        for process, parent in found.items():
            if parent == run.pid and list(found.values()).count(process) > 1:
                return process
        time.sleep(0.1)
    return None


def test_twenty_kills_lose_nothing(tmp_path: Path) -> None:
    choose = random.Random(4)
    run = start(tmp_path, "retry")
    measured = 0
    for _ in range(KILLS):
        if not run.is_alive():
            run.finish()
            run = start(tmp_path, "retry")
        worker = worker_of(run, tmp_path)
        time.sleep(choose.uniform(0.0, SLOWEST))
        victim = choose.choice(("supervisor", "worker"))
        process = run.pid if victim == "supervisor" or worker is None else worker
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            continue
        if process == run.pid:
            run.finish()
            assert left_over(str(tmp_path)) == {}
        now = sum(r.status is Status.OK for r in records(tmp_path))
        assert now >= measured
        measured = now
    run.kill()
    run.finish()
    code, errors = start(tmp_path, "retry").finish()
    found = records(tmp_path)
    assert (code, errors, len({key_of(r.point) for r in found}), {r.status for r in found}) == (
        0,
        "",
        len(found),
        {Status.OK},
    )
    assert left_over(str(tmp_path)) == {}


def test_a_signal_ends_a_run_with_a_message_that_says_how_to_go_on(tmp_path: Path) -> None:
    run = start(tmp_path)
    worker_of(run, tmp_path)
    run.kill(signal.SIGTERM)
    code, errors = run.finish()
    assert (code, "was ended by SIGTERM" in errors, "run the same command again" in errors) == (
        143,
        True,
        True,
    )
    assert left_over(str(tmp_path)) == {}


def test_a_stopped_worker_does_not_keep_a_run_from_ending(tmp_path: Path) -> None:
    run = start(tmp_path)
    worker = worker_of(run, tmp_path)
    assert worker is not None
    os.kill(worker, signal.SIGSTOP)
    run.kill(signal.SIGINT)
    assert run.finish()[0] == 130
    assert left_over(str(tmp_path)) == {}


def test_another_machine_is_refused_and_the_difference_named(tmp_path: Path) -> None:
    start(tmp_path).finish()
    code, errors = start(tmp_path, cpu="heavy").finish()
    assert (code, "cpu light and heavy" in errors) == (2, True), errors
