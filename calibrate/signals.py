"""Signals that ask a run to end: noted when they come, acted on at the next look."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SHELL_BASE = 128
"""A shell's exit code for a process that a signal has ended is this plus its number."""
_ELASTIC = "TORCHELASTIC_RUN_ID"
"""Set in every process that torchrun starts."""
LAUNCHER_GONE = "end of the launcher"


@contextmanager
def ending_signals(environment: Mapping[str, str]) -> Iterator[Callable[[], str]]:
    """Give a function that returns the name of a signal that came; empty while none has.

    A second signal of a kind acts as it would anywhere else. Under torchrun the end of the
    launcher counts as one: it would leave its processes behind when it is killed.
    """
    came: list[str] = []
    parent = os.getppid() if _ELASTIC in environment else None

    def note(number: int, _: object) -> None:
        came.append(signal.Signals(number).name)
        signal.signal(number, signal.SIG_DFL)

    # Python lets only the main thread of a program set handlers.
    mine = ENDING if threading.current_thread() is threading.main_thread() else ()
    before = {each: signal.signal(each, note) for each in mine}

    def first() -> str:
        if came:
            return came[0]
        return LAUNCHER_GONE if parent is not None and os.getppid() != parent else ""

    try:
        yield first
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def exit_code_of(name: str) -> int:
    """Return the exit code of a process that has ended because of a signal.

    >>> exit_code_of("SIGTERM")
    143
    """
    return SHELL_BASE + (signal.Signals[name] if name in signal.Signals.__members__ else 1)
