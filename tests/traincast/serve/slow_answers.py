"""Ways to answer that a worker's process must cope with; a process of its own imports them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from traincast.serve.evaluation import Answer, Asked

LONG = 60.0


def by_text(asked: Asked, go_on: Callable[[], None]) -> Answer:
    """Do as the text says; an answer names the process that gave it."""
    match asked.text:
        case "search":
            _search(Path(asked.folder), go_on)
        case "stuck":
            _mark(Path(asked.folder))
            time.sleep(LONG)
        case "die":
            os._exit(1)
        case _:
            pass
    return Answer(notes=(asked.text, str(os.getpid())))


def _search(folder: Path, go_on: Callable[[], None]) -> None:
    _mark(folder)
    until = time.monotonic() + LONG
    while time.monotonic() < until:
        time.sleep(0.01)
        go_on()


def _mark(folder: Path) -> None:
    (folder / "begun").write_text("")
