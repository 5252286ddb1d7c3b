"""What workers can be given to do without reading the program: it takes them seconds."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

KILLS_ALWAYS, KILLS_ONCE = 1, 4
AGAIN_SECONDS = 2.0
"""So long that a result which is lost can be seen to be so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """As much of a case as workers look at."""

    number: int
    folder: str
    """In which marks are left."""


def echo(case: Light) -> tuple[int, str]:
    """Return the number of the case, and something like a row."""
    return case.number, f"row {case.number}"


def deadly(case: Light) -> tuple[int, str]:
    """Do as `echo`, but kill this process for one case always, and for another the first time."""
    mark = Path(case.folder, "killed")
    once = case.number == KILLS_ONCE and not mark.exists()
    if once:
        mark.touch()
    if once or case.number == KILLS_ALWAYS:
        os.kill(os.getpid(), signal.SIGKILL)
    return echo(case)


def marked(case: Light) -> tuple[int, str]:
    """Do as `echo`, leave behind which process did it, and take a while if it was done before."""
    mark = Path(case.folder, str(case.number))
    if mark.exists():
        time.sleep(AGAIN_SECONDS)
    with mark.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return echo(case)


def workers_of(folder: Path) -> dict[int, list[int]]:
    """Return the processes that have done each case as `marked` does, in their order."""
    marks = ((int(mark.name), mark.read_text().split()) for mark in folder.iterdir())
    return {number: list(map(int, pids)) for number, pids in marks if pids}
