"""Real-time scheduling for emulated ranks: other processes of the machine cannot hold them up.

Every thread of every rank gets one and the same priority, as two can keep each other from running
for ever where gloo spins. They take turns in slices of 4 ms, so that a rank's communication gets a
word in while it computes; the kernel's own slices of 100 ms would serialise the two.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

SLICE_MS = 4
_SLICE = Path("/proc/sys/kernel/sched_rr_timeslice_ms")
_PRIORITY = 1
_LONGEST = 60_000_000
"""Microseconds of compute without a pause after which the kernel ends a rank."""


@contextmanager
def short_slices() -> Iterator[None]:
    """Set the kernel's round-robin slice, and put it back however this process ends."""
    before = _SLICE.read_text().strip()
    # The shell reads until this process closes its end, by dying if need be.
    guardian = subprocess.Popen(
        ["sh", "-c", f"cat >/dev/null; echo {before} > {_SLICE}"],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _SLICE.write_text(str(SLICE_MS))
        yield
    finally:
        assert guardian.stdin is not None
        guardian.stdin.close()
        guardian.wait()


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep every core busy with small products whenever no rank runs on it.

    Cores of one machine slow each other: a rank that computes while its neighbour waits would be
    up to a third faster than while layers were timed, and be so in pipelines above all.
    """
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _PRODUCTS],
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            preexec_fn=partial(_only_when_idle, core),  # noqa: PLW1509
        )
        for core in sorted(os.sched_getaffinity(0))
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


_PRODUCTS = """
import numpy, os
a = numpy.ones((64, 64), numpy.float32)
parent = os.getppid()
while os.getppid() == parent:
    for _ in range(1000):
        a @ a
"""
"""Ends with the process that started it."""


def _only_when_idle(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def take_turns(cpu: int) -> None:
    """Put the calling process, which should be a fresh child, on one core at this priority."""
    os.sched_setaffinity(0, {cpu})
    resource.setrlimit(resource.RLIMIT_RTTIME, (_LONGEST, _LONGEST))
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_PRIORITY))


def take_turns_or_fail() -> None:
    """Raise `OSError` where this process may not give its children a real-time priority."""
    probe = subprocess.Popen(["true"], preexec_fn=lambda: take_turns(0))  # noqa: PLW1509
    probe.wait()
