"""Tables that fit a terminal: less important columns go first, and numbers are never cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from reports.styles import Style
from reports.wrapping import widest_word, wrapped

_GAP = 2
_NARROWEST = 16
"""Cells of a column of words whose lines are broken, at least; below, rows become blocks."""
_INDENT = " " * _GAP


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
        """Cells of its widest text."""
        return max(cell_len(cell) for cell in (self.title, *self.cells))


def fit_columns(columns: Sequence[Column], width: int) -> tuple[list[Column], list[str]]:
    """Return the columns that fit in `width` characters, and the titles of those left out.

    >>> wide = Column(title="wide", cells=["x" * 20], rank=1)
    >>> kept, dropped = fit_columns([Column(title="tp", cells=["8"]), wide], 10)
    >>> [column.title for column in kept], dropped
    (['tp'], ['wide'])
    """
    kept, dropped = list(columns), []
    while len(kept) > 1 and needed_width(kept) > width and any(each.rank for each in kept):
        last = max(range(len(kept)), key=lambda i: (kept[i].rank, i))
        dropped.append(kept.pop(last).title)
    return kept, dropped


def needed_width(columns: Sequence[Column]) -> int:
    """Return the characters of a line of these columns."""
    return sum(column.width for column in columns) + _GAP * (len(columns) - 1)


def print_table(
    console: Console,
    columns: Sequence[Column],
    hint: str = "",
    styles: Mapping[int, Style] | None = None,
) -> None:
    """Print the columns that fit, and name those that do not; `hint` says where to see them.

    Where even those that must stay are too wide, the lines of the widest column of words are
    broken; where that is not enough, each row is a block of names and values. `styles` are those of
    rows, counted from 0; the others are plain.
    """
    safe = [_encodable(console, column) for column in columns]
    kept, dropped = fit_columns(safe, console.width)
    narrow = kept if needed_width(kept) <= console.width else _narrowed(kept, console.width)
    if narrow:
        _print_rows(console, narrow, styles or {})
    else:
        _print_blocks(console, kept, styles or {})
    if dropped:
        note = f"left out at {console.width} characters: {', '.join(dropped)}"
        print_text(console, f"{note} ({hint})" if hint else note, Style.MUTED)


def as_pairs(columns: Sequence[Column]) -> list[tuple[str, str]]:
    """Return the lines of a table as aligned columns and the words of the last one.

    >>> as_pairs([Column(title="n", cells=["12"]), Column(title="why", cells=["long words"])])
    [(' n', 'why'), ('12', 'long words')]
    """
    *first, last = columns
    lines = list(zip(*((column.title, *column.cells) for column in first), strict=True))
    pairs = zip([_line(first, line) for line in lines], (last.title, *last.cells), strict=True)
    return list(pairs)[0 if any(column.title for column in columns) else 1 :]


def print_pairs(
    console: Console,
    pairs: Sequence[tuple[str, str]],
    styles: Mapping[str, Style] | None = None,
) -> None:
    """Print names and values in two columns; `styles` are those of values, by their names.

    Long values are broken between words. A name that takes more than half the width, or a value
    with a word that does not fit beside the names, has the value below it.
    """
    if not pairs:
        return
    limit = max(1, console.width // 2 - _GAP)
    pairs = [(_shown(console, name), _shown(console, value)) for name, value in pairs]
    width = min(max(cell_len(name) for name, _ in pairs), limit)
    room = console.width - width - _GAP
    for name, value in pairs:
        style = (styles or {}).get(name.strip(), Style.PLAIN)
        if cell_len(name) > width or widest_word(value) > room:
            print_text(console, name, Style.TITLE)
            below = " " * (len(name) - len(name.lstrip())) + _INDENT
            for line in wrapped(value, console.width - len(below)):
                print_line(console, below + line, style)
            continue
        first, *rest = wrapped(value, room)
        head = Text().append(_pad(name, width), Style.TITLE)
        _print(console, head.append(f"{_INDENT}{first}".rstrip(), style))
        for line in rest:
            print_line(console, " " * width + _INDENT + line, style)


def print_heading(console: Console, text: str) -> None:
    """Print a heading after an empty line."""
    console.print()
    print_text(console, text, Style.HEADING)


def print_text(console: Console, text: str, style: str = "") -> None:
    """Print a sentence, wrapped between words."""
    for line in wrapped(_shown(console, text), console.width):
        print_line(console, line, style)


def print_line(console: Console, text: str, style: str = "") -> None:
    """Print one line as it is, however long."""
    _print(console, Text(text.rstrip(), style=style))


def _print(console: Console, text: Text) -> None:
    console.print(text, no_wrap=True, overflow="ignore", crop=False)


def _narrowed(columns: Sequence[Column], width: int) -> list[Column]:
    """Return the columns with the widest one of words in broken lines; none where too narrow."""
    words = [place for place, column in enumerate(columns) if column.justify == "left"]
    if not words:
        return []
    widest = max(words, key=lambda place: columns[place].width)
    column = columns[widest]
    room = width - needed_width(columns) + column.width
    if room < max(_NARROWEST, *map(widest_word, (column.title, *column.cells))):
        return []
    cells = ["\n".join(wrapped(cell, room)) for cell in column.cells]
    return [*columns[:widest], replace(column, cells=cells), *columns[widest + 1 :]]


def _print_rows(console: Console, columns: Sequence[Column], styles: Mapping[int, Style]) -> None:
    titles, *rows = zip(*((column.title, *column.cells) for column in columns), strict=True)
    lines = [[cell.split("\n") for cell in row] for row in rows]
    widths = [
        replace(column, cells=[part for row in lines for part in row[place]])
        for place, column in enumerate(columns)
    ]
    print_line(console, _line(widths, titles), Style.TITLE)
    for place, row in enumerate(lines):
        for number in range(max(map(len, row))):
            parts = [cell[number] if number < len(cell) else "" for cell in row]
            print_line(console, _line(widths, parts), styles.get(place, Style.PLAIN))


def _print_blocks(console: Console, columns: Sequence[Column], styles: Mapping[int, Style]) -> None:
    """Print every row as its first cell, and below it the names and values of the others."""
    first, *others = columns
    for place, head in enumerate(first.cells):
        style = styles.get(place, Style.PLAIN)
        print_text(console, f"{first.title} {head}".strip(), f"{Style.TITLE} {style}".strip())
        pairs = [(_INDENT + each.title, each.cells[place]) for each in others if each.cells[place]]
        print_pairs(console, pairs)


def _line(columns: Sequence[Column], cells: Sequence[str]) -> str:
    padded = (_pad(cell, c.width, c.justify) for c, cell in zip(columns, cells, strict=True))
    return (" " * _GAP).join(padded)


def _pad(cell: str, width: int, justify: str = "left") -> str:
    room = " " * (width - cell_len(cell))
    return room + cell if justify == "right" else cell + room


def _encodable(console: Console, column: Column) -> Column:
    cells = [_shown(console, cell) for cell in column.cells]
    return replace(column, title=_shown(console, column.title), cells=cells)


def _shown(console: Console, text: str) -> str:
    """Return a text with what the console's encoding lacks escaped, which takes more cells."""
    encoding = console.encoding
    return text.encode(encoding, "backslashreplace").decode(encoding)
