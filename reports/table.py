"""Tables that fit a terminal: less important columns go first, and numbers are never cut."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

_GAP = 2
_NARROWEST = 20
_MUTED = "dim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of text, and how soon it may be left out."""

    title: str
    cells: Sequence[str]
    rank: int = 0
    """0: always shown; else the column with the highest rank is left out first."""
    justify: Literal["left", "right"] = "right"

    @property
    def width(self) -> int:
        """Characters of its widest cell."""
        return max(cell_len(cell) for cell in (self.title, *self.cells))


def fit_columns(columns: Sequence[Column], width: int) -> tuple[list[Column], list[str]]:
    """Return the columns that fit in `width` characters, and the titles of those left out.

    >>> wide = Column(title="wide", cells=["x" * 20], rank=1)
    >>> kept, dropped = fit_columns([Column(title="tp", cells=["8"]), wide], 10)
    >>> [column.title for column in kept], dropped
    (['tp'], ['wide'])
    """
    kept, dropped = list(columns), []
    while needed_width(kept) > width and any(column.rank for column in kept):
        last = max(range(len(kept)), key=lambda i: (kept[i].rank, i))
        dropped.append(kept.pop(last).title)
    return kept, dropped


def needed_width(columns: Sequence[Column]) -> int:
    """Return the characters of a line of these columns."""
    return sum(column.width for column in columns) + _GAP * (len(columns) - 1)


def print_table(console: Console, columns: Sequence[Column], hint: str = "") -> None:
    """Print the columns that fit, and name those that do not; `hint` says where to see them."""
    kept, dropped = fit_columns(columns, console.width)
    titles, *rows = zip(*((column.title, *column.cells) for column in kept), strict=True)
    print_line(console, _line(kept, titles), "bold")
    for row in rows:
        print_line(console, _line(kept, row))
    if dropped:
        note = f"left out at {console.width} characters: {', '.join(dropped)}"
        print_text(console, f"{note} ({hint})" if hint else note, _MUTED)


def as_pairs(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """Return the lines of a table as aligned columns and the words of the last one.

    >>> as_pairs([Column(title="n", cells=["12"]), Column(title="why", cells=["long words"])])
    [(' n', 'why'), ('12', 'long words')]
    """
    *first, last = columns
    lines = list(zip(*((column.title, *column.cells) for column in first), strict=True))
    pairs = zip([_line(first, line) for line in lines], (last.title, *last.cells), strict=True)
    return list(pairs)[0 if any(column.title for column in columns) else 1 :]


def print_pairs(console: Console, pairs: Sequence[tuple[str, str]]) -> None:
    """Print names and values in two columns; long values wrap between words."""
    if not pairs:
        return
    limit = max(1, console.width // 2 - _GAP)
    width = min(max(cell_len(name) for name, _ in pairs), limit)
    indent = " " * (width + _GAP)
    for name, value in pairs:
        long = cell_len(name) > width
        if long:
            print_line(console, name, "bold")
        head = indent if long else _pad(name, width) + " " * _GAP
        lines = _wrap(value, console.width - width - _GAP)
        first = Text(f"{head}{lines[0]}".rstrip())
        if not long:
            first.stylize("bold", 0, len(name))
        _print(console, first)
        for line in lines[1:]:
            print_line(console, indent + line)


def print_heading(console: Console, text: str) -> None:
    """Print a heading after an empty line."""
    console.print()
    print_text(console, text, "bold underline")


def print_text(console: Console, text: str, style: str = "") -> None:
    """Print a sentence, wrapped between words."""
    for line in _wrap(text, console.width):
        print_line(console, line, style)


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print one line as it is, however long."""
    _print(console, Text(text.rstrip(), style=style))


def _print(console: Console, text: Text) -> None:
    console.print(text, no_wrap=True, overflow="ignore", crop=False)


def _line(columns: Sequence[Column], cells: Sequence[str]) -> str:
    padded = (_pad(cell, c.width, c.justify) for c, cell in zip(columns, cells, strict=True))
    return (" " * _GAP).join(padded)


def _pad(cell: str, width: int, justify: str = "left") -> str:
    room = " " * (width - cell_len(cell))
    return room + cell if justify == "right" else cell + room


def _wrap(text: str, width: int) -> list[str]:
    """Return the lines of a text; words, numbers and names are never cut."""
    width = max(_NARROWEST, width)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return lines or [""]
