"""A section of a report: a heading, sentences and a table, for every kind of output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.quantities import percent, plain
from reports.table import Column

NONE = "-"
"""What stands in a cell that has no value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading, sentences and a table; text and table may be empty."""

    title: str
    text: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles of the columns."""
        return tuple(column.title for column in self.columns)

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The cells, line by line."""
        return tuple(zip(*(column.cells for column in self.columns), strict=True))


def facts_section(
    title: str, facts: Sequence[tuple[str, str]], text: Sequence[str] = ()
) -> Section:
    """Return a section of names and values."""
    names, values = [name for name, _ in facts], [value for _, value in facts]
    return Section(
        title=title, text=tuple(map(plain, text)), columns=(words("", names), words("", values))
    )


def words(title: str, cells: Sequence[str], rank: int = 0) -> Column:
    """Return a column of text, which begins at its left edge; on one line, harmless."""
    return Column(title=title, cells=[plain(cell) for cell in cells], rank=rank, justify="left")


def figures(title: str, cells: Sequence[str], rank: int = 0) -> Column:
    """Return a column of numbers, which end at its right edge."""
    return Column(title=title, cells=list(cells), rank=rank)


def share(value: float | None) -> str:
    """Return a fraction in percent, or a dash."""
    return NONE if value is None else percent(value)
