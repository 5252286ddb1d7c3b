"""A worker answers the newest question of each page, within its limit, and lives on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.traincast.serve.slow_answers import LONG, by_text
from traincast.serve.evaluation import Answer, Asked, Question
from traincast.serve.worker import Worker

LIMIT = 6.0
"""Seconds in which a process starts and answers on a busy machine."""


@pytest.fixture(name="worker")
def _worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path, limit=LONG, answering=by_text, modules=())
    yield worker
    worker.stop()


def asked(text: str, folder: Path) -> Asked:
    return Asked(question=Question.MAP, text=text, folder=str(folder))


def answered(found: Answer | None) -> tuple[str, ...]:
    assert found is not None
    return found.notes


@pytest.mark.parametrize(("text", "same_process"), [("search", True), ("stuck", False)])
def test_a_newer_question_of_a_page_interrupts_the_older(
    text: str, worker: Worker, tmp_path: Path, *, same_process: bool
) -> None:
    _, first = answered(worker.ask(asked("ready", tmp_path), "page"))
    begun = time.monotonic()
    with ThreadPoolExecutor() as others:
        older = others.submit(worker.ask, asked(text, tmp_path), "page")
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        newer, second = answered(worker.ask(asked("newer", tmp_path), "page"))
        assert older.result() is None
    assert (newer, first == second) == ("newer", same_process)
    assert time.monotonic() - begun < LONG / 2


def test_another_page_waits_and_interrupts_nothing(worker: Worker, tmp_path: Path) -> None:
    with ThreadPoolExecutor() as others:
        found = [others.submit(worker.ask, asked(page, tmp_path), page) for page in ("a", "b")]
        assert [answered(each.result())[0] for each in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [("stuck", f"took longer than {LIMIT:g} s and was ended"), ("die", "ended before it had an")],
)
def test_after_a_question_without_an_answer_the_next_has_one(
    text: str, rule: str, tmp_path: Path
) -> None:
    worker = Worker(tmp_path, limit=LIMIT, answering=by_text, modules=())
    try:
        found = worker.ask(asked(text, tmp_path), "page")
        assert found is not None
        (problem,) = found.problems
        assert (rule in problem.rule, bool(problem.fix)) == (True, True)
        assert answered(worker.ask(asked("next", tmp_path), "page"))[0] == "next"
    finally:
        worker.stop()
