"""The lock on a folder of results: two runs never write into one journal."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from simulator.errors import InputError, Problem

LOCK = ".lock"
_WAIT = 5.0
"""Seconds for the workers of a run that was killed a moment ago to be gone."""
_STEP = 0.1
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems without locks answer (Lustre mounted without `flock`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """An open file that is locked until it is closed here and in every worker that has it."""

    handle: int
    notes: tuple[str, ...] = ()

    def release(self) -> None:
        """Give the folder free."""
        os.close(self.handle)


def lock_folder(
    folder: Path, sleep: Callable[[float], None] = time.sleep, doing: str = "measure"
) -> Lock:
    """Make a folder and lock it, or say who has it and is `doing` something into it.

    The lock lives in a file of its own, as a repaired journal is a new file. Workers inherit it,
    so that a folder is free only when the last of them is gone.

    Raises:
        InputError: another run has it, or the folder cannot be made.
    """
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        rule = f"cannot be written: {(error.strerror or '').lower()}"
        raise InputError(Problem(where=str(folder), rule=rule)) from error
    try:
        note = _take(handle, path, sleep, doing)
    except BaseException:
        os.close(handle)
        raise
    _sign(handle)
    return Lock(handle=handle, notes=(note,) if note else ())


def _take(handle: int, path: Path, sleep: Callable[[float], None], doing: str) -> str:
    """Lock, and return a note where the file system has no locks."""
    waited = 0.0
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return ""
        except BlockingIOError as error:
            if waited >= _WAIT:
                raise InputError(_taken(path, doing)) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return f"{path.parent}: this file system has no locks; never start two runs in it"
        sleep(_STEP)
        waited += _STEP


def _sign(handle: int) -> None:
    """Write who has the lock; a full disk has no room for it, and the lock holds all the same."""
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {os.uname().nodename}\n".encode(), 0)


def _taken(path: Path, doing: str) -> Problem:
    return Problem(
        where=str(path.parent),
        rule=f"one run at a time can {doing} into a folder",
        found=path.read_text(encoding="utf-8", errors="replace").strip() or "another run",
        fix="wait for it, end it, or choose another folder with --out",
    )
