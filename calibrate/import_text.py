"""Opening files of unknown origin: compressed or not, in any common encoding."""

from __future__ import annotations

import codecs
import io
import re
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING

from simulator.errors import InputError, Problem

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_TEXT_BYTES = 256 * 2**20
"""Of a log or a table, unpacked: benchmark logs with NCCL_DEBUG=INFO of a thousand ranks fit."""
MAX_TRACE_BYTES = 4 * 2**30
"""Of a trace, unpacked; traces are read event by event."""
HEAD_BYTES = 2**20
_GZIP = b"\x1f\x8b"
_GZIP_FORMAT = 31
"""Of zlib's `wbits`: a gzip header and 32 KiB of window."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_BINARY_SHARE = 0.1
"""Of control characters, above which a text is none."""
_CONTROL = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
_ZEROS = 0.25
"""Share of zero bytes above which a text is UTF-16 without a mark: half of plain English is."""
_FAILURES = (OSError, ValueError)


def read_head(path: Path) -> str:
    """Return the first `HEAD_BYTES` as text; what cannot be decoded is replaced.

    Raises:
        InputError: missing, a folder, no permission, empty, or binary.
    """
    try:
        if not path.is_file():
            found = "a folder or device" if path.exists() else "nothing"
            raise InputError(Problem(where=str(path), rule="must be a regular file", found=found))
        with open_bytes(path) as file:
            text = _decode(file.read(HEAD_BYTES))
    except _FAILURES as error:
        raise _unreadable(path, error) from error
    if not text.strip():
        raise InputError(Problem(where=str(path), rule="is empty: nothing was measured in it"))
    if len(_CONTROL.findall(text)) > _BINARY_SHARE * len(text):
        raise InputError(Problem(where=str(path), rule="must be a text file", found="binary data"))
    return text


def read_whole(path: Path) -> str:
    """Return the text of a log or a table of at most `MAX_TEXT_BYTES`, with plain line ends."""
    try:
        with open_bytes(path) as file:
            data = file.read(MAX_TEXT_BYTES + 1)
    except _FAILURES as error:
        raise _unreadable(path, error) from error
    if len(data) > MAX_TEXT_BYTES:
        rule = f"must be at most {MAX_TEXT_BYTES} bytes unpacked"
        raise InputError(Problem(where=str(path), rule=rule, fix="split it, a run a file"))
    return _decode(data)


def open_bytes(path: Path) -> IO[bytes]:
    """Return a file opened for reading, unpacked where it is gzip, whatever its name says."""
    with path.open("rb") as file:
        packed = file.read(len(_GZIP)) == _GZIP
    return io.BufferedReader(_Unpacked(path), HEAD_BYTES) if packed else path.open("rb")


class _Unpacked(io.RawIOBase):
    """The content of a gzip file; one whose writer was killed ends where it was cut off."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("rb")
        self._member = zlib.decompressobj(wbits=_GZIP_FORMAT)
        self._packed = b""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        """Fill a buffer and return the bytes in it; 0 at the end."""
        room = memoryview(buffer)
        while True:
            try:
                data = self._member.decompress(self._packed, len(room))
            except zlib.error as error:
                raise OSError(f"damaged gzip data: {error}") from error
            self._packed = self._member.unconsumed_tail
            if data:
                room[: len(data)] = data
                return len(data)
            if self._member.eof:
                self._packed = self._member.unused_data
                self._member = zlib.decompressobj(wbits=_GZIP_FORMAT)
            if not self._packed:
                self._packed = self._file.read(HEAD_BYTES)
            if not self._packed:
                return 0

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def _decode(data: bytes) -> str:
    return data.decode(_encoding(data), errors="replace").replace("\r\n", "\n").replace("\r", "\n")


def _encoding(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    zeros = data.count(0)
    if zeros > _ZEROS * len(data) and b"\0\0" not in data[:4]:
        # UTF-16 without a mark, as PowerShell redirects it: every other byte is zero.
        return "utf-16-be" if data[0] == 0 else "utf-16-le"
    return "utf-8"


def _unreadable(path: Path, error: BaseException) -> InputError:
    reason = (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
    return InputError(Problem(where=str(path), rule=f"cannot be read: {reason}"))
