"""One emulated rank: a process that has read everything, moved onto its host and its core.

All ranks of all jobs are forked from one process that has read torch, in the product's own way for
workers: else the jobs would spend most of their time reading it again and again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path

from tests.emulation.namespaces import enter
from tests.emulation.scheduling import take_turns
from traincast.cli import main

REPOSITORY = Path(__file__).resolve().parents[2]
_KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**34)}
"""What a rank frees stays its own, as with the allocators that training on CPUs is advised to load:
else it loses some per cent to page faults, more or fewer by what it ran before."""
_ONE_CORE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    **_KEEPS_MEMORY,
    "PYTHONPATH": str(REPOSITORY),
}
"""Of a host; read when the libraries are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """What one process of a job is and does."""

    network: str
    """Path of its host's network namespace."""
    core: int
    variables: Mapping[str, str]
    """Of its environment, as a launcher sets them."""
    arguments: tuple[str, ...]
    """Of `traincast`."""
    log: Path


def start(rank: Rank) -> ForkServerProcess:
    """Start a rank; it ends with this process."""
    forking = get_context("forkserver")
    forking.set_forkserver_preload(["tests.emulation.everything"])
    with _environment(_ONE_CORE):
        ensure_running()
    process = forking.Process(target=_run, args=(rank,))
    process.start()
    return process


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _run(rank: Rank) -> None:
    enter(rank.network)
    take_turns(rank.core)
    os.chdir(REPOSITORY)
    os.environ.update(rank.variables)
    output = os.open(rank.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    sys.stdout = sys.stderr = os.fdopen(output, "w", buffering=1)
    code = main(list(rank.arguments))
    sys.stdout.flush()
    os._exit(code)
