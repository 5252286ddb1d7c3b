"""Numbers of launch files have a range."""

from __future__ import annotations

import pytest

from planner.launch.keys import Keys


@pytest.mark.parametrize("value", ["7", "-0.1", "nan", "inf"])
def test_a_share_outside_its_range_is_refused_with_the_range(value: str) -> None:
    keys = Keys({"dropout": value}, "run.sh")
    keys.real("dropout", least=0, most=1)
    rule = "must be a finite number of at least 0 and at most 1"
    assert [(problem.key, problem.rule) for problem in keys.problems] == [("dropout", rule)]


def test_both_ends_of_a_range_belong_to_it() -> None:
    keys = Keys({"a": "0", "b": "1"}, "run.sh")
    found = [keys.real(name, least=0, most=1) for name in ("a", "b")]
    assert (found, keys.problems) == ([0.0, 1.0], [])
