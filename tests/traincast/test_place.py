"""`traincast place`: the order that it writes is the one that it forecasts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.planner.test_placing import scenario
from tests.traincast.command_line import Outcome, run


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("place")
    scenario(folder)
    return folder


@pytest.fixture(scope="module", name="outcome")
def _outcome(folder: Path) -> Outcome:
    given = ("-o", folder / "places.csv", "--json", folder / "place.json", "--budget", 10)
    return run("place", folder / "scenario.toml", *given)


def test_both_steps_and_the_traffic_of_each_axis_are_printed(outcome: Outcome) -> None:
    assert (outcome.code, outcome.err) == (0, "")
    for part in ("step before", "step after", "shorter", "GB between switches", "places.csv"):
        assert part in outcome.out


def test_a_forecast_with_the_file_is_the_one_shown(outcome: Outcome, folder: Path) -> None:
    record = json.loads((folder / "place.json").read_text())
    text = (folder / "scenario.toml").read_text()
    placed = folder / "placed.toml"
    placed.write_text(text.replace('"cyclic"', '"places.csv"'))
    step = run("simulate", placed, "--json", "-").record["step"]["step_time_s"]
    assert (outcome.code, record["better"]) == (0, True)
    assert step == pytest.approx(record["found"]["step_time_s"], rel=1e-12)


def test_a_misspelt_goal_is_refused_with_what_was_meant(folder: Path) -> None:
    outcome = run("place", folder / "scenario.toml", "--goal", "cross-teir")
    assert (outcome.code, "did you mean 'cross-tier'?" in outcome.err) == (2, True)


def test_a_scenario_without_a_layout_is_refused(folder: Path) -> None:
    path = folder / "no_layout.toml"
    path.write_text((folder / "scenario.toml").read_text().partition("[layout]")[0])
    outcome = run("place", path)
    assert (outcome.code, "this scenario has no layout" in outcome.err) == (2, True)


def test_a_layout_of_another_size_is_refused(folder: Path) -> None:
    path = folder / "small.toml"
    text = (folder / "scenario.toml").read_text()
    path.write_text(text.replace("dp = 2", "dp = 1"))
    outcome = run("place", path)
    assert (outcome.code, "must use all 32 accelerators" in outcome.err) == (2, True)


def test_the_scenario_is_not_overwritten(folder: Path) -> None:
    path = folder / "scenario.toml"
    outcome = run("place", path, "-o", path)
    assert (outcome.code, "would overwrite the input" in outcome.err) == (2, True)
