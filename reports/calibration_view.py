"""Terminal rendering of sections: aligned tables that fit, long words wrapped."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from reports.section import Section
from reports.table import (
    as_pairs,
    fit_columns,
    needed_width,
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
            print_text(console, sentence, "dim")
        _print_columns(console, section, hint)


def _print_columns(console: Console, section: Section, hint: str) -> None:
    """Print the table; as names and wrapped words where even its main columns are too wide."""
    if not section.columns:
        return
    kept, dropped = fit_columns(section.columns, console.width)
    if any(section.titles) and needed_width(kept) <= console.width:
        print_table(console, section.columns, hint)
        return
    print_pairs(console, as_pairs(kept))
    if dropped:
        note = f"left out at {console.width} characters: {', '.join(dropped)}"
        print_text(console, f"{note} ({hint})", "dim")
