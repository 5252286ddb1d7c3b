"""A trace as text of at most a number of bytes, unpacked while it is read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibrate.import_json import Text
from calibrate.import_text import MAX_TRACE_BYTES, open_bytes
from simulator.errors import InputError, Problem
from simulator.file_errors import no_file


@contextmanager
def trace_text(path: Path, most: int = MAX_TRACE_BYTES) -> Iterator[Text]:
    """Give the text of a trace, plain or gzip.

    Raises:
        InputError: it cannot be read, or is larger than `most` bytes unpacked.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise InputError(no_file(path))
        with open_bytes(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace")
            yield _Limited(text, path, most)
    except OSError as error:
        rule = f"cannot be read: {error.strerror or error}".lower()
        raise InputError(Problem(where=str(path), rule=rule)) from error


class _Limited:
    """Text of at most `most` characters; more is an error, not a part."""

    def __init__(self, text: io.TextIOBase, path: Path, most: int) -> None:
        self._text = text
        self._most = self._left = most
        self._path = path

    def read(self, size: int, /) -> str:
        piece = self._text.read(size)
        self._left -= len(piece)
        if self._left < 0:
            rule = f"must be at most {self._most} bytes unpacked"
            fix = "profile fewer steps (schedule(active=...))"
            raise InputError(Problem(where=str(self._path), rule=rule, fix=fix))
        return piece
