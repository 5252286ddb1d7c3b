"""A report as a page in a file, whose name says its format."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from simulator.errors import InputError, Problem

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


def page_of(document: Document, out: str, browser: str | None) -> str | bytes:
    """Return a report as HTML, Markdown or PDF, as the name `out` says; `browser` prints the PDF.

    Raises:
        InputError: the page is too large, or nothing prints it.
    """
    from reports.page.html import html_of

    match Path(out).suffix.lower():
        case ".md":
            from reports.page.markdown import markdown_of

            return markdown_of(document)
        case ".pdf":
            from reports.page.pdf import pdf_of

            return pdf_of(html_of(document), browser)
        case _:
            return html_of(document)
