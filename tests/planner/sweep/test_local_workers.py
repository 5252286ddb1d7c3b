"""Workers of this machine: the same rows as without them, and none lost where they are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from planner.sweep.local_workers import local_rows
from planner.sweep.row import Outcome
from tests.planner.sweep.light import KILLS_ALWAYS, Light, deadly, echo


def test_killed_workers_lose_no_row_but_that_of_the_case_that_kills(tmp_path: Path) -> None:
    cases: Any = [Light(number=number, folder=str(tmp_path)) for number in range(8)]
    work: Any = deadly
    found = dict(local_rows(cases, work, jobs=2))
    died = found.pop(KILLS_ALWAYS)
    assert died.outcome is Outcome.DIED
    assert found == dict(echo(case) for case in cases if case.number != KILLS_ALWAYS)
