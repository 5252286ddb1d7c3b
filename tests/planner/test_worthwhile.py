"""What `--layout-key` asks for is one kind of layouts."""

from __future__ import annotations

import pytest

from planner.worthwhile import wanted_of
from simulator.errors import InputError


def test_two_values_of_one_axis_contradict_each_other() -> None:
    with pytest.raises(InputError, match=r"one kind has one tp, and it is 2 before \(found tp=4\)"):
        wanted_of("tp=2,tp=4", "run.toml")


def test_a_value_said_twice_is_one() -> None:
    assert wanted_of("tp=2, pp=4,tp=2", "run.toml") == {"tp": "2", "pp": "4"}
