"""The part of every rank but rank 0: do what rank 0 says until it says that the run is over."""

from __future__ import annotations

from calibrate.attend import attend
from calibrate.board import left_name, report_name, task_name
from calibrate.crew import Crew
from calibrate.probe import probe_here
from calibrate.worker_messages import Task

END = "end"
"""In place of a task: there is none any more."""


def follow(crew: Crew) -> None:
    """Do tasks until the last.

    Raises:
        RunEndedError: rank 0 is gone, or has said that the run ends.
        BoardGoneError: so is the store.
    """
    number = 0
    while True:
        text = _next(crew, number)
        if text == END:
            crew.board.post(left_name(crew.identity.rank), END)
            return
        _do(crew, Task.model_validate_json(text))
        number += 1


def _next(crew: Crew, number: int) -> str:
    while True:
        (text,) = crew.board.read([task_name(number)])
        if text is not None:
            return text
        crew.pulse.tick()


def _do(crew: Crew, task: Task) -> None:
    if task.batch is None:
        probe_here(crew, task)
        return
    messages = attend(crew, task, shared=True)
    while True:
        try:
            next(messages)
        except StopIteration as end:
            name = report_name(task.number, crew.identity.rank)
            crew.board.post(name, end.value.model_dump_json())
            return
