"""`traincast report` refuses what it cannot write before it reads, and says the nearest fix."""

from pathlib import Path

import pytest

from tests.traincast.command_line import run


def test_a_missing_result_is_named(tmp_path: Path) -> None:
    found = run("report", tmp_path / "none.json", "-o", tmp_path / "report.html")
    assert (found.code, found.out) == (2, "")
    assert "none.json" in found.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "says nothing of what to write"),
        (("-o", "report.docx"), "must end with .html, .md, .pdf"),
    ],
)
def test_a_page_without_a_known_format_is_refused(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    found = run("report", tmp_path / "step.json", *arguments)
    assert found.code == 2
    assert said in " ".join(found.err.split())


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "taken"
    file.write_text("kept")
    found = run("report", tmp_path / "step.json", "--tables", file)
    assert found.code == 2
    assert "must be a folder" in " ".join(found.err.split())
    assert file.read_text() == "kept"


def test_a_page_never_overwrites_a_result_that_it_reads(tmp_path: Path) -> None:
    result = tmp_path / "step.md"
    result.write_text("kept")
    assert run("report", result, "-o", result).code == 2
    assert result.read_text() == "kept"
