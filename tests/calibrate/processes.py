"""Which processes of a test are alive, read from /proc."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

GONE_SECONDS = 15.0
"""For killed processes to be gone on a busy machine."""


def alive(mark: str) -> dict[int, int]:
    """Return the processes whose command line holds `mark`, each with its parent's id."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace")
            status = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if mark in words and status[0] != "Z":
            found[int(folder.name)] = int(status[1])
    return found


def left_over(mark: str, only: Collection[int] | None = None) -> dict[int, int]:
    """Return the processes that are still alive after a while; empty as soon as none is.

    `only` are the process ids that count; all where it is not given.
    """
    end = time.monotonic() + GONE_SECONDS
    while True:
        found = {p: of for p, of in alive(mark).items() if only is None or p in only}
        if not found or time.monotonic() > end:
            return found
        time.sleep(0.1)
