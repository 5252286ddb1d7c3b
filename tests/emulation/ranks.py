"""`traincast calibrate run` on the hosts of an emulated cluster, one rank a host, as srun would."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.emulation.cluster import Cluster
from tests.emulation.scheduling import take_turns

REPOSITORY = Path(__file__).resolve().parents[2]
_PORT = 29500


def calibrate_run(
    made: Cluster,
    plan: Path,
    out: Path,
    *,
    ranks: int,
    limit: float,
    hosts: Sequence[int] = (),
    computes: bool = True,
) -> None:
    """Measure `plan` with `ranks` ranks into `out`; raise with what they said if it fails.

    `hosts` is the host of each rank; left out, rank i runs on host i. Where there are fewer cores
    than ranks and the plan `computes`, neighbours share one: those of a pipeline stage, which
    compute at the same time, so that each takes as much longer as it did while layers were timed.
    Else ranks are dealt to the cores in turn, so that neighbours start together.
    """
    hosts = hosts or range(ranks)
    cores = sorted(os.sched_getaffinity(0))
    out.mkdir(parents=True, exist_ok=True)
    started = []
    for rank in range(ranks):
        cpu = cores[rank * len(cores) // ranks if computes else rank % len(cores)]
        log = (out / f"host{rank}.txt").open("w")
        process = made.hosts[hosts[rank]].popen(
            _command(plan, out),
            partial(take_turns, cpu),
            env=_environment(made.address(hosts[0]), rank, ranks),
            cwd=REPOSITORY,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        log.close()
        started.append(process)
    _wait(started, out, limit)


def _command(plan: Path, out: Path) -> list[str]:
    arguments = ["calibrate", "run", "--plan", str(plan), "--out", str(out), "--device", "cpu"]
    return [sys.executable, "-m", "traincast", *arguments]


def _environment(master: str, rank: int, ranks: int) -> dict[str, str]:
    return {
        **os.environ,
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": master,
        "MASTER_PORT": str(_PORT),
        "GLOO_SOCKET_IFNAME": "eth0",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(REPOSITORY),
    }


def _wait(started: Sequence[subprocess.Popen[str]], out: Path, limit: float) -> None:
    """Wait for all; end all and raise where one fails or time is up."""
    deadline = time.monotonic() + limit
    try:
        for process in started:
            process.wait(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise AssertionError(f"not done in {limit:g} s\n{_said(out)}") from None
    finally:
        for process in started:
            process.kill()
            process.wait()
    codes = [process.returncode for process in started]
    assert not any(codes), f"exit codes {codes}\n{_said(out)}"


def _said(out: Path) -> str:
    logs = sorted(out.glob("host*.txt"))
    return "\n".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in logs)
