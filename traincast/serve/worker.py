"""A process that answers questions one at a time; it is ended where an answer takes too long."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic
from typing import TypeAlias

from simulator.errors import Problem
from traincast.serve.confinement import confine
from traincast.serve.evaluation import LOADED_FIRST, Answer, Asked, answer

LIMIT_SECONDS = 30.0
"""For an answer and, before the first, the start of the process on a busy machine: an estimate
takes a fraction of a second, a map as long as its search may."""
_LOOK_SECONDS = 0.05
"""Between looks whether the page has asked something newer."""
_GRACE_SECONDS = 2.0
"""For a process to leave a question that is no longer asked; then it is ended."""
Answering: TypeAlias = Callable[[Asked, Callable[[], None]], Answer]
"""Answers a question; it calls the second from time to time, which raises `Superseded`."""


class Superseded(Exception):  # noqa: N818
    """The page has asked something newer."""


class Worker:
    """Owns one process, made when it is first needed and again after it was ended."""

    def __init__(
        self,
        folder: Path,
        limit: float = LIMIT_SECONDS,
        answering: Answering = answer,
        modules: Sequence[str] = LOADED_FIRST,
    ) -> None:
        self._folder = folder
        self._limit = limit
        self._answering = answering
        self._modules = modules
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
        """Return the answer; None where the page has asked something newer meanwhile.

        A question that nobody waits for any more is left, so that the newer one need not wait.
        """
        mine = self._newest[page] = next(self._numbers)

        def wanted() -> bool:
            return self._newest[page] == mine

        with self._lock:
            found = self._answer(asked, wanted) if wanted() else None
        return found if wanted() else None

    def stop(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _answer(self, asked: Asked, wanted: Callable[[], bool]) -> Answer | None:
        try:
            pipe = self._started()
            pipe.send(asked)
            until = monotonic() + self._limit
            while monotonic() < until:
                if pipe.poll(_LOOK_SECONDS):
                    found: Answer = pipe.recv()
                    return found
                if not wanted():
                    self._leave(pipe)
                    return None
            rule = f"took longer than {self._limit:g} s and was ended"
            fix = "a smaller search table, or the command line"
        except (EOFError, OSError):
            rule, fix = "ended before it had an answer", "fewer nodes or micro-batches"
        self._end()
        return Answer(problems=(Problem(where="evaluation", rule=rule, fix=fix),))

    def _leave(self, pipe: Connection) -> None:
        """Have the process leave its question: it says so, or is ended."""
        pipe.send(None)
        if pipe.poll(_GRACE_SECONDS):
            pipe.recv()
        else:
            self._end()

    def _started(self) -> Connection:
        if self._pipe is None or self._process is None or not self._process.is_alive():
            self._end()
            context = get_context("spawn")
            self._pipe, inner = context.Pipe()
            work = (inner, self._answering, self._folder, self._modules)
            self._process = context.Process(target=_work, args=work, daemon=True)
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


def _work(pipe: Connection, answering: Answering, folder: Path, modules: Sequence[str]) -> None:
    """Answer until the other end is closed; Ctrl-C is the server's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in modules:
        import_module(module)
    confine(folder)

    def go_on() -> None:
        if pipe.poll():
            raise Superseded

    try:
        while True:
            asked = pipe.recv()
            if asked is not None:  # else it came as the answer went
                pipe.send(_answered(pipe, asked, answering, go_on))
    except (EOFError, OSError):
        return


def _answered(
    pipe: Connection, asked: Asked, answering: Answering, go_on: Callable[[], None]
) -> Answer | None:
    try:
        return answering(asked, go_on)
    except Superseded:
        pipe.recv()
        return None
