"""Files written whole or not at all, one or several together."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from simulator.errors import InputError
from simulator.file_errors import file_problem, reason_of

_PREFIX = 40
"""Characters of a file's name that its temporary one begins with: a name may be 255 bytes long."""


def write_atomic(path: Path | str, text: str) -> None:
    """Write `text` as `write_bytes_atomic` does."""
    write_bytes_atomic(path, _encoded(Path(path), text))


def write_bytes_atomic(path: Path | str, data: bytes) -> None:
    """Write `data` to `path` so that a reader sees the old file or the new one, never a part.

    A link stays, and the file that it names is written; a device or pipe is written to as it is.

    Raises:
        InputError: the folder is missing or cannot be written.
    """
    write_together({Path(path): data})


def write_together(files: Mapping[Path, str | bytes]) -> None:
    """Write several files as `write_bytes_atomic` does each: all of them, or none.

    All are written beside their places first and take them last, so that a full disk or a folder
    that refuses leaves every old file as it was. Devices and pipes come after the files.

    Raises:
        InputError: a folder is missing or cannot be written, or a text is not UTF-8.
    """
    encoded = {path: _encoded(path, data) for path, data in files.items()}
    streams = [path for path in encoded if _is_stream(path)]
    written: dict[Path, tuple[Path, Path]] = {}
    try:
        for path in (each for each in encoded if each not in streams):
            with _said_of(path):
                target = path.resolve() if path.is_symlink() else path
                written[path] = _written_beside(target, encoded[path]), target
        for path, (temporary, target) in written.items():
            with _said_of(path):
                temporary.replace(target)
        for path in streams:
            with _said_of(path):
                path.write_bytes(encoded[path])
    finally:
        for temporary, _ in written.values():
            temporary.unlink(missing_ok=True)


def _written_beside(target: Path, data: bytes) -> Path:
    """Return a new file with `data` in the folder of `target`."""
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:_PREFIX]}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def _encoded(path: Path, data: str | bytes) -> bytes:
    with _said_of(path):
        return data.encode("utf-8") if isinstance(data, str) else data


def _is_stream(path: Path) -> bool:
    with _said_of(path):
        return path.exists() and not (path.is_file() or path.is_dir())


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    """Turn what the system or an encoding refuses into an `InputError` about `path`."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(file_problem(path, f"cannot be written: {reason_of(error)}")) from error
