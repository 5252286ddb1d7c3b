"""The board of several ranks: torch's own store, which torchrun's agent or rank 0 holds."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as LateError
from datetime import timedelta
from typing import TypeVar

from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]

from calibrate.board import BoardGoneError
from calibrate.identity import Identity
from calibrate.worker_messages import Store

_PREFIX = "traincast"
_ANSWER_SECONDS = 20.0
"""For one question to the store; a network that drops packets for so long is gone."""
_AGENT = "TORCHELASTIC_USE_AGENT_STORE"

_Value = TypeVar("_Value")
_Question = tuple[Callable[[TCPStore], object], "Future[object]"]


class StoreBoard:
    """A board in a TCP store.

    A thread of its own asks the store, so that a host that has vanished can hold up that thread
    and never this process. Under torchrun the agent holds the store, else rank 0 does; the port is
    bound once either way.
    """

    def __init__(self, identity: Identity, seconds: float) -> None:
        """Connect within `seconds`. Raises `BoardGoneError` where nobody answers."""
        self._questions: queue.SimpleQueue[_Question] = queue.SimpleQueue()
        connected: Future[object] = Future()
        arguments = (self._questions, identity, seconds, connected)
        threading.Thread(target=_answer, args=arguments, daemon=True).start()
        self._wait(connected, seconds + _ANSWER_SECONDS)

    def post(self, name: str, text: str) -> None:
        """Put a text there, in place of an earlier one. Raises `BoardGoneError`."""
        self._ask(lambda store: store.set(f"{_PREFIX}/{name}", text))

    def read(self, names: Sequence[str]) -> list[str | None]:
        """Return the text of each name; None where there is none. Raises `BoardGoneError`."""
        return self._ask(lambda store: [_read(store, f"{_PREFIX}/{name}") for name in names])

    def _ask(self, question: Callable[[TCPStore], _Value]) -> _Value:
        answer: Future[_Value] = Future()
        self._questions.put((question, answer))  # type: ignore[arg-type]
        return self._wait(answer, _ANSWER_SECONDS)

    @staticmethod
    def _wait(answer: Future[_Value], seconds: float) -> _Value:
        try:
            return answer.result(timeout=seconds)
        except LateError as error:
            raise BoardGoneError(f"no answer within {seconds:.0f} s") from error
        except (RuntimeError, ValueError, OSError) as error:
            raise BoardGoneError(str(error).splitlines()[0]) from error


def connect(store: Store, seconds: float) -> PrefixStore:
    """Return the store of a batch as a worker sees it."""
    client = TCPStore(store.host, store.port, is_master=False, timeout=timedelta(seconds=seconds))
    return PrefixStore(store.prefix, client)


def _answer(
    questions: queue.SimpleQueue[_Question],
    identity: Identity,
    seconds: float,
    connected: Future[object],
) -> None:
    try:
        store = _open(identity, seconds)
    except Exception as error:
        connected.set_exception(error)
        return
    connected.set_result(None)
    while True:
        question, answer = questions.get()
        try:
            answer.set_result(question(store))
        except Exception as error:
            answer.set_exception(error)


def _open(identity: Identity, seconds: float) -> TCPStore:
    held_by_agent = os.environ.get(_AGENT) == "True"
    return TCPStore(
        identity.master,
        identity.port,
        is_master=identity.rank == 0 and not held_by_agent,
        timeout=timedelta(seconds=seconds),
        wait_for_workers=False,
        multi_tenant=not held_by_agent,
    )


def _read(store: TCPStore, name: str) -> str | None:
    return store.get(name).decode() if store.check([name]) else None
