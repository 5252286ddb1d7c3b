"""A process that answers questions one at a time; it is ended where an answer takes too long."""

from __future__ import annotations

import signal
import threading
from importlib import import_module
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from simulator.errors import Problem
from traincast.serve.evaluation import LOADED_FIRST, Answer, Asked, answer

LIMIT_SECONDS = 30.0
"""For an answer and, before the first, the start of the process on a busy machine: an estimate
takes a fraction of a second, a map as long as its search may."""


class Worker:
    """Owns one process, made when it is first needed and again after it was ended."""

    def __init__(self, limit: float = LIMIT_SECONDS) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._numbers = count()
        self._newest: dict[str, int] = {}
        """Of each open page, the number of its newest question."""

    def start(self) -> None:
        """Start the process, so that the first question finds it ready."""
        with self._lock:
            self._started()

    def ask(self, asked: Asked, page: str) -> Answer | None:
        """Return the answer; None where the page has asked something newer meanwhile."""
        mine = self._newest[page] = next(self._numbers)
        with self._lock:
            found = self._answer(asked) if self._newest[page] == mine else None
        return found if self._newest[page] == mine else None

    def stop(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _answer(self, asked: Asked) -> Answer:
        try:
            pipe = self._started()
            pipe.send(asked)
            if pipe.poll(self._limit):
                found: Answer = pipe.recv()
                return found
            rule = f"took longer than {self._limit:g} s and was ended"
            fix = "a smaller search table, or the command line"
        except (EOFError, OSError):
            rule, fix = "ended before it had an answer", "fewer nodes or micro-batches"
        self._end()
        return Answer(problems=(Problem(where="evaluation", rule=rule, fix=fix),))

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


def _work(pipe: Connection) -> None:
    """Answer until the other end is closed; Ctrl-C is the server's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in LOADED_FIRST:
        import_module(module)
    try:
        while True:
            pipe.send(answer(pipe.recv()))
    except (EOFError, OSError):
        return
