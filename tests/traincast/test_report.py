"""`traincast report` refuses what it cannot write before it reads, and says the nearest fix."""

import sys
from pathlib import Path

import pytest

from reports.result_files import ResultKind
from tests.reports.result_files.made import made
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


def test_parquet_without_its_library_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    folder = tmp_path / "tables"
    result = made(ResultKind.GOODPUT, tmp_path)
    found = run("report", result, "--tables", folder, "--table-format", "parquet")
    said = " ".join(found.err.split())
    assert (found.code, folder.exists()) == (2, False)
    assert "--table-format" in said
    assert "pip install 'traincast[parquet]'" in said


def test_a_report_writes_all_of_its_files_or_none(tmp_path: Path) -> None:
    result = made(ResultKind.GOODPUT, tmp_path)
    folder = tmp_path / "out"
    assert run("report", result, "--figures", folder, "--figure-format", "svg").code == 0
    last = sorted(folder.iterdir())[-1]
    for each in folder.iterdir():
        each.unlink()
    last.mkdir()
    page = tmp_path / "report.md"
    found = run("report", result, "-o", page, "--figures", folder, "--figure-format", "svg")
    assert (found.code, page.exists(), list(folder.iterdir())) == (2, False, [last])
    assert str(last) in " ".join(found.err.split())


@pytest.mark.parametrize("last_words", ["", "no such display"])
def test_a_browser_that_prints_nothing_is_quoted_as_it_spoke(
    last_words: str, tmp_path: Path
) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\necho '{last_words}' >&2\n")
    browser.chmod(0o755)
    out = tmp_path / "report.pdf"
    found = run("report", made(ResultKind.GOODPUT, tmp_path), "-o", out, "--browser", browser)
    expected = f"wrote no PDF: {last_words} (found" if last_words else "wrote no PDF, and no reason"
    assert (found.code, out.exists()) == (2, False)
    assert expected in found.err


@pytest.mark.parametrize("options", [("-o", "none/report.html"), ("--tables", "taken/tables")])
def test_what_cannot_be_written_is_said_without_a_traceback(
    options: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("kept")
    result = made(ResultKind.GOODPUT, tmp_path)
    found = run("report", result, options[0], tmp_path / options[1])
    assert (found.code, found.out) == (2, "")
    assert "cannot be" in " ".join(found.err.split())
    assert (tmp_path / "taken").read_text() == "kept"


def test_a_pdf_without_a_browser_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TRAINCAST_BROWSER", raising=False)
    out = tmp_path / "report.pdf"
    found = run("report", made(ResultKind.GOODPUT, tmp_path), "-o", out)
    assert (found.code, out.exists()) == (2, False)
    assert "or write .html" in " ".join(found.err.split())


def test_the_same_results_give_the_same_files(tmp_path: Path) -> None:
    result = made(ResultKind.GOODPUT, tmp_path)
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        page = folder / "report.html"
        assert run("report", result, "-o", page, "--tables", folder / "tables").code == 0
    one, other = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in folders
    )
    assert len(one) > 1
    assert one == other
