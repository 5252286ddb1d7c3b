"""PDF is the page, printed by a real browser with all of its figures."""

from __future__ import annotations

import re
import stat
import zlib
from contextlib import suppress
from pathlib import Path

import pytest

from reports.page.document import document_of
from reports.page.html import html_of
from reports.page.pdf import VARIABLE, browser_path, pdf_of
from simulator.errors import InputError
from tests.browser import browser_path as installed
from tests.reports.page.small_results import step_file


@pytest.mark.skipif(installed() is None, reason="needs Chromium or Chrome on the PATH")
def test_a_printed_report_has_its_figures_on_several_pages() -> None:
    pdf = pdf_of(html_of(document_of([step_file()])))
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) > 1
    # #77aadd of matrix products and #ee8866 of attention, which only bars are filled with.
    assert {b".4667 .6667 .8667", b".9333 .5333 .4"} <= _fills(pdf)


def test_without_a_browser_it_is_said_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(InputError, match="printed by Chromium or Chrome, and none is on the PATH"):
        browser_path(None)


def test_a_browser_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "no-such-browser")
    with pytest.raises(InputError, match="no-such-browser") as caught:
        browser_path(None)
    assert "is no program that can be run" in str(caught.value)


def test_the_browser_that_is_given_goes_before_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, "no-such-browser")
    given = _program(tmp_path, "exit 0")
    assert browser_path(str(given)) == str(given)


def test_what_a_browser_says_when_it_fails_is_passed_on(tmp_path: Path) -> None:
    failing = _program(tmp_path, "echo 'no display' >&2; exit 1")
    with pytest.raises(InputError, match="the browser wrote no PDF: no display"):
        pdf_of("<p>a</p>", str(failing))


def _fills(pdf: bytes) -> set[bytes]:
    """Return the colours, red, green and blue of 1, that shapes of a PDF are filled with."""
    drawn = b""
    for stream in re.findall(rb"stream\r?\n(.*?)endstream", pdf, re.DOTALL):
        with suppress(zlib.error):
            drawn += zlib.decompress(stream)
    return set(re.findall(rb"([\d.]+ [\d.]+ [\d.]+) rg\b", drawn))


def _program(folder: Path, line: str) -> Path:
    path = folder / "browser"
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
