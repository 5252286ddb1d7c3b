"""`traincast calibrate import` as a user meets it: files, summary, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrate.importing import output_names
from calibrate.records import Header, Record
from tests.calibrate.logs import log
from tests.traincast.command_line import run


@pytest.fixture(name="good")
def _good(tmp_path: Path) -> Path:
    path = tmp_path / "good.log"
    path.write_text(log(), encoding="utf-8")
    return path


@pytest.fixture(name="bad")
def _bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.log"
    path.write_text("nothing\n", encoding="utf-8")
    return path


def test_a_log_becomes_a_file_named_after_it(good: Path, tmp_path: Path) -> None:
    outcome = run("calibrate", "import", good, "--out", tmp_path / "out")
    assert (outcome.code, outcome.err) == (0, "")
    lines = (tmp_path / "out" / "good.log.jsonl").read_text(encoding="utf-8").splitlines()
    Header.model_validate_json(lines[0])
    assert len([Record.model_validate_json(line) for line in lines[1:]]) == 6


def test_the_table_says_what_was_found(good: Path, tmp_path: Path) -> None:
    out = run("calibrate", "import", good, "--out", tmp_path / "out").out
    assert "6 collective" in out
    assert "6 ok" in out


def test_importing_again_replaces_the_file(good: Path, tmp_path: Path) -> None:
    for _ in range(2):
        run("calibrate", "import", good, "--out", tmp_path / "out")
    (only,) = (tmp_path / "out").iterdir()
    assert only.read_text(encoding="utf-8").count("\n") == 7


def test_a_file_that_cannot_be_read_does_not_keep_the_others(
    good: Path, bad: Path, tmp_path: Path
) -> None:
    outcome = run("calibrate", "import", bad, good, "--out", tmp_path / "out")
    assert outcome.code == 2
    assert f"{bad}: is of no kind that can be imported" in outcome.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good.log.jsonl"]


def test_all_problems_are_told(bad: Path, tmp_path: Path) -> None:
    outcome = run("calibrate", "import", bad, tmp_path / "none", "--out", tmp_path / "out")
    assert outcome.err.count("must be a regular file") == 1
    assert outcome.err.count("is of no kind") == 1


def test_the_summary_is_had_as_json(good: Path, tmp_path: Path) -> None:
    outcome = run("calibrate", "import", good, "--out", tmp_path / "out", "--json", "-")
    (row,) = outcome.record["files"]
    assert (row["points"], row["status"]) == ({"collective": 6}, {"ok": 6})


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "x.log" for folder in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(log(), encoding="utf-8")
    run("calibrate", "import", *paths, "--out", tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["a_x.log.jsonl", "b_x.log.jsonl"]


@pytest.mark.parametrize(
    ("option", "value"), [("--bytes", "many"), ("--line-rate", "0 GB/s"), ("--bytes", "1")]
)
def test_a_wrong_unit_is_told(good: Path, tmp_path: Path, option: str, value: str) -> None:
    outcome = run("calibrate", "import", good, "--out", tmp_path / "out", option, value)
    assert outcome.code == 2
    assert option in outcome.err


def test_a_folder_that_cannot_be_made_is_told(good: Path, tmp_path: Path) -> None:
    outcome = run("calibrate", "import", good, "--out", good / "sub")
    assert outcome.code == 2
    assert "cannot be made" in outcome.err


def test_the_next_step_is_named_where_there_is_something_to_fit(good: Path, tmp_path: Path) -> None:
    out = run("calibrate", "import", good, "--out", tmp_path / "out").out
    assert f"next: traincast calibrate fit {tmp_path / 'out'} --out profile.toml" in out


@pytest.mark.parametrize(
    ("option", "fix"), [("--bytes", '--bytes "1 GiB"'), ("--line-rate", '--line-rate "450 GB/s"')]
)
def test_a_number_without_its_unit_is_told_with_one_that_has_it(
    good: Path, tmp_path: Path, option: str, fix: str
) -> None:
    outcome = run("calibrate", "import", good, "--out", tmp_path / "out", option, "5")
    assert (outcome.code, fix in outcome.err) == (2, True)


def test_the_journal_of_a_run_is_never_replaced(good: Path, tmp_path: Path) -> None:
    log_file = good.rename(tmp_path / "measured")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "measured.jsonl").write_text("of a run\n")
    outcome = run("calibrate", "import", log_file, "--out", folder)
    kept = (folder / "measured.jsonl").read_text()
    assert (outcome.code, kept) == (2, "of a run\n")


def test_a_name_that_a_folder_makes_is_told_apart_too() -> None:
    names = output_names([Path("a/x.log"), Path("b/x.log"), Path("a_x.log")]).values()
    assert len(set(names)) == len(names)
