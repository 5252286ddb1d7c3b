"""A schedule file from the command line: written, read back, and refused with all its mistakes."""

from __future__ import annotations

from pathlib import Path

from tests.traincast.command_line import run
from tests.traincast.test_examples import example


def scenario_with(folder: Path, text: str) -> Path:
    """Return a scenario in `folder` whose schedule file says `text`."""
    (folder / "schedules").mkdir()
    (folder / "schedules" / "llama3-8b-pp4.csv").write_text(text, encoding="utf-8")
    path = folder / "scenario.toml"
    path.write_text(example("llama3-8b-csv-schedule").read_text(encoding="utf-8"))
    return path


def test_a_written_schedule_is_read_back(tmp_path: Path) -> None:
    first = run("simulate", example("llama3-8b-csv-schedule"), "--schedule", "-")
    again = run("simulate", scenario_with(tmp_path, first.out), "--schedule", "-")
    assert (first.code, again.code, again.out) == (0, 0, first.out)


def test_every_mistake_of_a_file_is_told_and_the_exit_code_is_2(tmp_path: Path) -> None:
    outcome = run("simulate", scenario_with(tmp_path, "0F0,oops\n0F1\n2F0\n3F0,9F9\n"))
    assert outcome.code == 2
    for place in ("row 1, column 2", "row 2, column 1", "row 4, column 2"):
        assert place in outcome.err


def test_dualpipe_cannot_be_written() -> None:
    outcome = run("simulate", example("deepseek-v3-2048-h800-dualpipe"), "--schedule", "-")
    assert (outcome.code, "dualpipe-v" in outcome.err) == (2, True)
