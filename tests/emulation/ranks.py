"""`traincast calibrate run` on the hosts of an emulated cluster, one rank a host, as srun would."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.emulation.cluster import Cluster
from tests.emulation.rank import Rank, start

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
    for number in range(ranks):
        rank = Rank(
            network=made.hosts[hosts[number]].path,
            core=cores[number * len(cores) // ranks if computes else number % len(cores)],
            variables=_variables(made.address(hosts[0]), number, ranks),
            arguments=_arguments(plan, out),
            log=out / f"host{number}.txt",
        )
        started.append(start(rank))
    _wait(started, out, limit)


def _arguments(plan: Path, out: Path) -> tuple[str, ...]:
    return ("calibrate", "run", "--plan", str(plan), "--out", str(out), "--device", "cpu")


def _variables(master: str, rank: int, ranks: int) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": master,
        "MASTER_PORT": str(_PORT),
        "GLOO_SOCKET_IFNAME": "eth0",
    }


def _wait(started: Sequence[ForkServerProcess], out: Path, limit: float) -> None:
    """Wait for all; end all and raise where one fails or time is up."""
    deadline = time.monotonic() + limit
    for process in started:
        process.join(max(0.0, deadline - time.monotonic()))
    codes = [process.exitcode for process in started]
    for process in started:
        process.kill()
        process.join()
    assert None not in codes, f"not done in {limit:g} s\n{_said(out)}"
    assert not any(codes), f"exit codes {codes}\n{_said(out)}"


def _said(out: Path) -> str:
    logs = sorted(out.glob("host*.txt"))
    return "\n".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in logs)
