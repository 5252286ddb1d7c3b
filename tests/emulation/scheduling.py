"""Real-time scheduling for emulated ranks: other processes of the machine cannot hold them up.

Every thread of every rank gets one and the same priority, as two can keep each other from running
for ever where gloo spins. They take turns in slices of 4 ms, so that a rank's communication gets a
word in while it computes; the kernel's own slices of 100 ms would serialise the two.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
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


def take_turns(cpu: int) -> None:
    """Put the calling process, which should be a fresh child, on one core at this priority."""
    os.sched_setaffinity(0, {cpu})
    resource.setrlimit(resource.RLIMIT_RTTIME, (_LONGEST, _LONGEST))
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_PRIORITY))


def take_turns_or_fail() -> None:
    """Raise `OSError` where this process may not give its children a real-time priority."""
    probe = subprocess.Popen(["true"], preexec_fn=lambda: take_turns(0))  # noqa: PLW1509
    probe.wait()
