"""One row of a table as typed cells; what is wrong or assumed in it is said in words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

_UNKNOWN = frozenset({"", "nan", "n/a", "na", "null", "unknown"})
_LARGEST = 10**15
"""Above any count in a table, and still exact as a float."""
_SHOWN = 60
_LEADING_DIGIT = re.compile(r"\s*(\d)\b")


class SkippedRowError(Exception):
    """A row cannot be predicted; the text is its reason."""


class Row:
    """The cells of one row, and what had to be assumed to read them; made for one row."""

    __slots__ = ("_cells", "assumed")

    def __init__(self, cells: Mapping[str, str]) -> None:
        self._cells = cells
        self.assumed: list[str] = []

    def assume(self, text: str) -> None:
        """Note something that the row does not say."""
        if text not in self.assumed:
            self.assumed.append(text)

    def text(self, column: str) -> str:
        """Return the text of a cell; empty where it is not known or the column is missing."""
        value = self._cells.get(column, "").strip()
        return "" if value.lower() in _UNKNOWN else value

    def known(self, column: str) -> bool:
        """Return whether a cell says something."""
        return bool(self.text(column))

    def integer(self, column: str, default: int | None = None, *, largest: int = _LARGEST) -> int:
        """Return a positive whole number up to `largest`; `default` is noted as assumed.

        Raises:
            SkippedRowError: it is not one, or is unknown and there is no default.
        """
        if not self.known(column):
            if default is None:
                raise SkippedRowError(f"{column}: not given")
            self.assume(f"{column} = {default}")
            return default
        number = self.number(column)
        if number != int(number):
            raise self.bad(column, "a positive whole number")
        if number > largest:
            raise self.bad(column, f"at most {largest}")
        return int(number)

    def number(self, column: str) -> float:
        """Return a positive finite number.

        Raises:
            SkippedRowError: it is not one, or is unknown.
        """
        if not self.known(column):
            raise SkippedRowError(f"{column}: not given")
        value = _float(self.text(column))
        if value is None or not math.isfinite(value) or value <= 0:
            raise self.bad(column, "a positive finite number")
        return value

    def optional_number(self, column: str) -> float | None:
        """Return a positive finite number, or None where the cell is unknown."""
        return self.number(column) if self.known(column) else None

    def flag(self, column: str, *, default: bool) -> bool:
        """Return a yes or no; `default` is noted as assumed."""
        word = self.text(column).lower()
        if not word:
            self.assume(f"{column} = {default}")
            return default
        if word in ("true", "yes", "1", "1.0"):
            return True
        if word in ("false", "no", "0", "0.0"):
            return False
        raise self.bad(column, "True or False")

    def leading_digit(self, column: str) -> int | None:
        """Return the digit that a cell begins with ("3 (FSDP)"), or None where it is unknown."""
        if not self.known(column):
            return None
        match = _LEADING_DIGIT.match(self.text(column))
        if match is None:
            raise self.bad(column, "a digit")
        return int(match[1])

    def bad(self, column: str, rule: str) -> SkippedRowError:
        """Return the error that says what stands in `column` and what should."""
        value = self.text(column)
        shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
        return SkippedRowError(f"{column}: {shown!r} is not {rule}")


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
