"""Two real ranks over gloo: one worker is stopped, one is killed, one supervisor is killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from calibrate.journal import JOURNAL, read_journal
from calibrate.points import key_of
from calibrate.records import Record, Status
from tests.calibrate.processes import alive, left_over

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="processes are looked up in /proc"
)

PLAN = """
[limits]
block_seconds = "50 ms"
blocks = 5
max_seconds = "500 ms"
spread = 10.0
[collectives]
operations = ["all_reduce", "all_gather", "reduce_scatter", "alltoall"]
members = ["2"]
least = "1 KiB"
cpu_most = "256 KiB"
factor = 2
"""
PATIENCE_SECONDS = 120.0
"""For torch to be read by two processes on a busy machine."""


@dataclass
class Pair:
    """Both supervisors of a run."""

    folder: Path
    runs: list[subprocess.Popen[str]]

    def records(self) -> list[Record]:
        path = self.folder / JOURNAL
        lines = read_journal(path).lines if path.exists() else ()
        return [line for line in lines if isinstance(line, Record)]

    def worker(self, rank: int) -> int:
        """Return the worker of a rank: of its supervisor's children the one with a warden."""
        found = alive(str(self.folder))
        parents = set(found.values())
        (process,) = [p for p, of in found.items() if of == self.runs[rank].pid and p in parents]
        return process

    def children(self) -> list[int]:
        """Return the workers of both ranks, and the servers that have forked them."""
        return [p for p, of in alive(str(self.folder)).items() if of in [r.pid for r in self.runs]]

    def await_measured(self, more: int) -> None:
        """Return when so many more points are on disk."""
        want = len(self.records()) + more
        self.wait(lambda: len(self.records()) >= want)

    def wait(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            ended = [run.returncode for run in self.runs if run.poll() is not None]
            assert not ended, [run.communicate() for run in self.runs]
            assert time.monotonic() < end, "the run stands still"
            time.sleep(0.05)


def start(folder: Path) -> Pair:
    plan = folder / "plan.toml"
    plan.write_text(PLAN)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    options = ["--plan", str(plan), "--out", str(folder / "out"), "--device", "cpu"]
    limits = ["--point-limit", "4 s", "--silent-limit", "8 s"]
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "traincast", "calibrate", "run", *options, *limits],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                **common,
                "OMP_NUM_THREADS": "1",
                "MASTER_PORT": str(port),
                "RANK": rank,
                "LOCAL_RANK": rank,
            },
        )
        for rank in ("0", "1")
    ]
    return Pair(folder / "out", runs)


@dataclass(frozen=True)
class Story:
    """What was left after the worker of rank 1 was stopped, then killed, then its supervisor."""

    records: list[Record]
    code: int
    words: str
    started: int
    """Workers and servers that were there when the supervisor of rank 1 was killed."""
    processes: dict[int, int]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    pair = start(tmp_path_factory.mktemp("ranks"))
    try:
        for harm in (signal.SIGSTOP, signal.SIGKILL):
            pair.await_measured(2)
            lost = len(lost_of(pair.records()))
            os.kill(pair.worker(1), harm)
            pair.wait(lambda before=lost: len(lost_of(pair.records())) > before)
        pair.await_measured(1)
        mine = pair.children()
        pair.runs[1].kill()
        _, words = pair.runs[0].communicate(timeout=PATIENCE_SECONDS)
        pair.runs[1].communicate()
        left = left_over(str(pair.folder), mine)
        yield Story(pair.records(), pair.runs[0].returncode, words, len(mine), left)
    finally:
        for run in pair.runs:
            run.kill()
            run.wait()


def lost_of(records: list[Record]) -> list[Record]:
    return [r for r in records if r.status in (Status.TIMEOUT, Status.FAILED)]


def test_a_hung_rank_is_named_and_its_point_marked(story: Story) -> None:
    hung = lost_of(story.records)[0]
    name = f"rank 1 ({socket.gethostname()}) is stopped"
    assert (hung.status, name in hung.reason) == ("timeout", True)


def test_a_dead_rank_is_named_with_its_signal(story: Story) -> None:
    dead = lost_of(story.records)[1]
    words = f"rank 1 ({socket.gethostname()}): the process was killed by SIGKILL"
    assert (dead.status, dead.reason.startswith(words)) == ("failed", True)


def test_only_the_points_in_progress_are_lost(story: Story) -> None:
    keys = [key_of(record.point) for record in story.records]
    assert (len(lost_of(story.records)), len(set(keys))) == (2, len(keys))


def test_a_dead_supervisor_ends_the_others_with_its_name(story: Story) -> None:
    name = f"rank 1 ({socket.gethostname()}) gave no sign of life for 8 s"
    assert (story.code, name in story.words) == (1, True)


def test_no_worker_or_server_outlives_its_supervisor(story: Story) -> None:
    assert (story.started, story.processes) == (4, {})
