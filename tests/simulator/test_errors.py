"""What an error says, and what the process returns for it."""

from __future__ import annotations

import pytest

from simulator.errors import InfeasibleError, InputError, Problem, TraincastError, UnsupportedError


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem(rule="must be odd"), "must be odd"),
        (Problem(where="a.toml", rule="must be odd"), "a.toml: must be odd"),
        (
            Problem(where="a.toml", key="b.c", found="2", rule="must be odd", fix="1 or 3"),
            "a.toml: b.c: must be odd (found 2)\n    fix: 1 or 3",
        ),
    ],
)
def test_a_problem_says_where_what_the_rule_and_the_fix(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_an_error_shows_all_its_problems() -> None:
    error = InputError(Problem(rule="one"), Problem(rule="two"))
    assert str(error) == "one\ntwo"


@pytest.mark.parametrize(
    ("kind", "code"),
    [(TraincastError, 2), (InputError, 2), (UnsupportedError, 2), (InfeasibleError, 1)],
)
def test_exit_codes(kind: type[TraincastError], code: int) -> None:
    assert kind.exit_code == code
