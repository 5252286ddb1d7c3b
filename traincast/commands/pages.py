"""A report as a page in a file, whose name says its format."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.errors import InputError, Problem
from traincast.commands.output import write, write_bytes

if TYPE_CHECKING:
    from reports.page.document import Document

PAGES = (".html", ".md", ".pdf")


class PageLanguage(StrEnum):
    """Language of a report."""

    ENGLISH = "en"
    CHINESE = "zh"


def check_page(out: str) -> None:
    """Raise `InputError` where the name of a page does not say a format that can be written."""
    if Path(out).suffix.lower() not in PAGES:
        rule = f"must end with {', '.join(PAGES)}, which says the format"
        raise InputError(Problem(key="--out", found=out, rule=rule, fix="report.html"))


def write_page(document: Document, out: str, browser: str | None) -> None:
    """Write a report as HTML, Markdown or PDF; `browser` prints the PDF.

    Raises:
        InputError: the file cannot be written, the page is too large, or nothing prints it.
    """
    match Path(out).suffix.lower():
        case ".md":
            from reports.page.markdown import markdown_of

            write(markdown_of(document), out)
        case ".pdf":
            from reports.page.html import html_of
            from reports.page.pdf import pdf_of

            write_bytes(pdf_of(html_of(document), browser), out)
        case _:
            from reports.page.html import html_of

            write(html_of(document), out)
