"""Writing that is on disk when it returns, for files that a killed run goes on with."""

from __future__ import annotations

import os
from pathlib import Path


def append_synced(path: Path, data: bytes) -> None:
    """Add bytes to a file; they are on disk on return, and it is as before where this raises.

    Raises:
        OSError: the disk is full, or whatever the file system says.
    """
    is_new = not path.exists()
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        before = os.fstat(handle).st_size
        try:
            write_all(handle, data)
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, before)
            raise
    finally:
        os.close(handle)
    if is_new:
        sync_folder(path.parent)


def write_all(handle: int, data: bytes) -> None:
    """Write in one call where the system lets it; a disk that is full takes a part first."""
    while data:
        data = data[os.write(handle, data) :]


def sync_folder(folder: Path) -> None:
    """Put the names of a folder on disk: those of files just made or renamed in it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
