"""Work that this process shares with others that it forks, where that saves time."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from typing import Generic, TypeVar

Share = TypeVar("Share")
Result = TypeVar("Result")

_MOST = 4
"""Processes at most: more take memory and save little."""


def hands() -> int:
    """Return how many processes may share work: this one, and what the machine has cores for.

    One where processes cannot be forked safely, and in one that is a helper itself.
    """
    if sys.platform != "linux" or parent_process() is not None:
        return 1
    return min(_MOST, len(os.sched_getaffinity(0)))


def in_shares(work: Callable[[Share], Result], shares: Sequence[Share]) -> list[Result]:
    """Return what `work` makes of each share: of the first here, of the others in forked helpers.

    Helpers see everything as it is now; only what they return comes back, pickled. Where one fails
    its share is done here, so that an error is raised as if there were none. A helper waits for
    nobody: it ends by itself, also where this process is killed.
    """
    helpers: list[_Helper[Share, Result]] = []
    try:
        helpers.extend(_Helper(work, share) for share in shares[1:])
        first = [work(share) for share in shares[:1]]
        return first + [helper.result() for helper in helpers]
    finally:
        for helper in helpers:
            helper.end()


class _Helper(Generic[Share, Result]):
    """Owns one forked process with one share of the work."""

    def __init__(self, work: Callable[[Share], Result], share: Share) -> None:
        self._work, self._share = work, share
        context = get_context("fork")
        self._receiver, sender = context.Pipe(duplex=False)
        ends = self._receiver, sender
        self._process = context.Process(target=_help, args=(work, share, *ends), daemon=True)
        self._runs = False
        with suppress(OSError):  # no more processes, or no memory for one
            self._process.start()
            self._runs = True
        sender.close()

    def result(self) -> Result:
        """Return its result once it is there."""
        try:
            found: Result = self._receiver.recv()
        except (EOFError, OSError):
            return self._work(self._share)
        return found

    def end(self) -> None:
        """End the process if it still runs."""
        self._receiver.close()
        if self._runs:
            self._process.kill()
            self._process.join()


def _help(
    work: Callable[[Share], Result],
    share: Share,
    receiver: Connection[object, Result],
    sender: Connection[Result, object],
) -> None:
    """Do one share and send the result; whatever goes wrong, whoever waits does it again."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # With nobody left to read it, sending fails; it would wait for ever if this end stayed open.
    receiver.close()
    status = 1
    try:
        sender.send(work(share))
        status = 0
    finally:
        # Nothing that this process has inherited is flushed or cleaned up a second time.
        os._exit(status)
