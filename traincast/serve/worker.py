"""A process that answers questions one at a time; it is ended where an answer takes too long."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from simulator.errors import Problem
from traincast.serve.evaluation import Answer, Asked, answer

_SLICE = 0.05
"""Seconds between two looks at whether a question is outdated."""
_PATIENCE = 0.5
"""Seconds that an outdated question may go on: to start a new process takes longer."""


class Worker:
    """Owns one process, made when it is first needed and again after it was ended."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        """Seconds that an answer may take, and the start of the process before it."""
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def ask(self, asked: Asked, outdated: Callable[[], bool] = lambda: False) -> Answer | None:
        """Return the answer; None where the question is outdated meanwhile."""
        with self._lock:
            if outdated():
                return None
            pipe = self._started()
            try:
                pipe.send(asked)
                return self._wait(pipe, outdated)
            except (EOFError, OSError):
                self._end()
                return _failed("ended before it had an answer", "fewer nodes or micro-batches")

    def stop(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _wait(self, pipe: Connection, outdated: Callable[[], bool]) -> Answer | None:
        begin = time.monotonic()
        while not pipe.poll(_SLICE):
            waited = time.monotonic() - begin
            if waited > self._limit:
                self._end()
                rule = f"took longer than {self._limit:g} s and was ended"
                return _failed(rule, "a smaller search table, or the command line")
            if waited > _PATIENCE and outdated():
                self._end()
                return None
        found: Answer = pipe.recv()
        return found

    def _started(self) -> Connection:
        if self._pipe is None or self._process is None or not self._process.is_alive():
            self._end()
            context = get_context("spawn")
            self._pipe, inner = context.Pipe()
            self._process = context.Process(target=_work, args=(inner,), daemon=True)
            self._process.start()
            inner.close()
        return self._pipe

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


class Newest:
    """Knows the newest question of each open page."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, int] = {}

    def claim(self, page: str) -> Callable[[], bool]:
        """Take the place of the newest question; the result says whether it has lost it."""
        with self._lock:
            mine = self._last.pop(page, 0) + 1
            self._last[page] = mine
            while len(self._last) > _PAGES:
                self._last.pop(next(iter(self._last)))
        return lambda: self._last.get(page) != mine


_PAGES = 64
"""Open pages that are told apart; the one unused longest is forgotten."""


def _work(pipe: Connection) -> None:
    """Answer until the other end is closed; Ctrl-C is the server's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            asked = pipe.recv()
        except (EOFError, OSError):
            return
        pipe.send(answer(asked))


def _failed(rule: str, fix: str) -> Answer:
    return Answer(problems=(Problem(where="evaluation", rule=rule, fix=fix),))
