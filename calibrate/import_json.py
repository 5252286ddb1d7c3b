"""Reading one long JSON array piece by piece, so that neither size nor a broken entry matters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

_CHUNK = 2**22
_LONGEST_ENTRY = 2**22
"""Characters after which an entry that cannot be read is taken for broken, not for cut."""
_LONGEST_FRAME = 2**26
"""Characters before and after the array."""
_BETWEEN = re.compile(r"[\s,]*")
_NEXT = re.compile(r"\}\s*,\s*(?=\{)")


class Text(Protocol):
    """What can be read in pieces."""

    def read(self, size: int, /) -> str:
        """Return at most `size` characters; none at the end."""


class ArrayStream:
    """The objects in the array under one key of a JSON object, or in an array itself.

    After they have been iterated over, `frame` holds the other keys, `broken` counts the entries
    that were no JSON, and `cut` says whether the text ended inside the array.
    """

    def __init__(self, text: Text, key: str, *, digits: bool = False) -> None:
        """`digits` keeps fractions as text, as they are written."""
        self._text = text
        self._decoder = json.JSONDecoder(strict=False, parse_float=str if digits else None)
        self._key = re.compile(rf'"{re.escape(key)}"\s*:\s*\[')
        self._buffer = ""
        self._at = 0
        self._ended = False
        self.frame: dict[str, Any] = {}
        self.broken = 0
        self.cut = False
        self.found = True

    def __iter__(self) -> Iterator[dict[str, Any]]:
        prefix = self._open()
        if prefix is None:
            self.found = False
            return
        while (entry := self._next()) is not None:
            if isinstance(entry, dict):
                yield entry
        self.frame = self._frame(prefix)

    def _open(self) -> str | None:
        """Go to the array and return what stands before it."""
        while True:
            bare = self._buffer.lstrip("\ufeff \t\r\n")
            match = self._key.search(self._buffer)
            if match is None and bare.startswith("["):
                self._at = self._buffer.index("[") + 1
                return ""
            if match is not None:
                self._at = match.end()
                return self._buffer[: match.end()]
            if len(self._buffer) > _LONGEST_FRAME or not self._more():
                return None

    def _next(self) -> object | None:
        """Return the next entry; None at the end."""
        while True:
            between = _BETWEEN.match(self._buffer, self._at)
            self._at = between.end() if between else self._at
            if self._at >= len(self._buffer):
                if not self._more():
                    self.cut = True
                    return None
                continue
            if self._buffer[self._at] == "]":
                self._at += 1
                return None
            entry = self._entry()
            if entry is not None:
                return entry
            if self.cut:
                return None

    def _entry(self) -> object | None:
        """Return the entry at hand; None where it is broken (and skipped) or cut off."""
        while True:
            try:
                entry, end = self._decoder.raw_decode(self._buffer, self._at)
            except (ValueError, RecursionError):
                long = len(self._buffer) - self._at > _LONGEST_ENTRY
                if not long and self._more():
                    continue
                self._skip()
                return None
            number = end == len(self._buffer) and not isinstance(entry, dict | list)
            if number and self._more():
                continue
            self._at = end
            return "" if entry is None else entry

    def _skip(self) -> None:
        """Go to the next entry after one that cannot be read."""
        following = _NEXT.search(self._buffer, self._at + 1)
        if following is None:
            self.cut = True
            return
        self.broken += 1
        self._at = following.end()

    def _more(self) -> bool:
        """Read on, forgetting what has been read; False at the end of the text."""
        if self._ended:
            return False
        piece = self._text.read(_CHUNK)
        self._ended = not piece
        if self._at > _CHUNK:
            self._buffer, self._at = self._buffer[self._at :], 0
        self._buffer += piece
        return bool(piece)

    def _frame(self, prefix: str) -> dict[str, Any]:
        """Return the keys around the array; what is cut off is lost."""
        if not prefix:
            return {}
        while len(self._buffer) - self._at < _LONGEST_FRAME and self._more():
            pass
        suffix = "}" if self.cut else self._buffer[self._at :]
        for end in (suffix, "}", "}}"):
            try:
                frame = json.loads(f"{prefix}]{end}", strict=False)
            except (ValueError, RecursionError):
                continue
            return frame if isinstance(frame, dict) else {}
        return {}
