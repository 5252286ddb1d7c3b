"""Answers hold what the verbs say of the same scenario; wrong input becomes problems."""

import json
from importlib.resources import files
from pathlib import Path

import pytest

from simulator.units import GIB
from traincast.forecasts import estimate_step
from traincast.serve.editing import with_layout
from traincast.serve.evaluation import Answer, Asked, Question, answer

START = files("traincast.serve").joinpath("start.toml").read_text("utf-8")


def asked(question: Question, text: str) -> Answer:
    return answer(Asked(question=question, text=text, folder="."))


@pytest.fixture(scope="module")
def mapped() -> Answer:
    return asked(Question.MAP, START)


def test_the_numbers_are_those_of_the_estimate(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(START)
    result = estimate_step(scenario)
    found = asked(Question.ESTIMATE, START)
    assert found.problems == ()
    step, memory = found.cards[0], next(c for c in found.cards if c.name == "peak memory")
    assert step.value == f"{result.step_time:.2f} s"
    peak = max(each.reserved for each in result.memory)
    assert memory.value.startswith(f"{peak / GIB:.2f} of ")
    assert (memory.note, memory.tone) == ("fits", "good")
    assert found.figures[0].title == "Memory of one rank at its peak"


def test_what_does_not_fit_is_marked() -> None:
    found = asked(Question.ESTIMATE, START.replace("tp = 8", "tp = 1"))
    memory = next(card for card in found.cards if card.name == "peak memory")
    assert (memory.note, memory.tone) == ("DOES NOT FIT", "bad")


def test_the_best_layout_taken_is_as_fast_as_its_cell_of_the_map(mapped: Answer) -> None:
    (drawing,) = mapped.figures
    fastest = min(z for row in drawing.plotly["data"][0]["z"] for z in row if z is not None)
    taken = asked(Question.ESTIMATE, with_layout(START, mapped.layout))
    assert float(taken.cards[0].value.removesuffix(" s")) == pytest.approx(fastest, abs=0.005)


def test_a_map_says_what_its_letters_mean_and_whether_it_is_complete(mapped: Answer) -> None:
    assert "X: " in mapped.figures[0].caption
    assert mapped.notes in [
        ("The search is complete.",),
        ("The search was cut short after 10 s: a cell may have a faster layout.",),
    ]


def test_figures_are_json(mapped: Answer) -> None:
    json.dumps(mapped.figures[0].plotly, allow_nan=False)


@pytest.mark.parametrize("question", Question)
@pytest.mark.parametrize(
    ("old", "new", "key"),
    [("tp = 8", "tp = 0", "layout.tp"), ("dgx-h100", "dgx-h1000", "cluster.profile")],
)
def test_all_that_is_wrong_is_said(question: Question, old: str, new: str, key: str) -> None:
    found = asked(question, START.replace(old, new))
    assert [problem.key for problem in found.problems] == [key]
    assert (found.cards, found.figures) == ((), ())
