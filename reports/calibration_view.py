"""Terminal rendering of sections: aligned tables that fit, long words wrapped."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from reports.section import Section
from reports.styles import Style
from reports.table import (
    as_pairs,
    print_heading,
    print_pairs,
    print_table,
    print_text,
)

_HINT = "see the report as .md or .html"


def print_sections(console: Console, sections: Iterable[Section], hint: str = _HINT) -> None:
    """Print sections one after another; `hint` says where the columns left out are."""
    for section in sections:
        print_heading(console, section.title)
        for sentence in section.text:
            print_text(console, sentence, Style.MUTED)
        _print_columns(console, section, hint)


def _print_columns(console: Console, section: Section, hint: str) -> None:
    """Print the table; where its columns have no titles, as names and wrapped words."""
    if not section.columns:
        return
    if any(section.titles):
        print_table(console, section.columns, hint)
    else:
        print_pairs(console, as_pairs(section.columns))
