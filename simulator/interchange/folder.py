"""A folder of results that appears whole or not at all."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from simulator.errors import InputError, Problem

_FOLDER_MODE = 0o755


@contextmanager
def new_folder(target: Path | str) -> Iterator[Path]:
    """Yield a folder to fill, which becomes `target` once it is full.

    Raises:
        InputError: something is at `target` already, or it cannot be written.
    """
    path = Path(target)
    check_free(path)
    temporary = None
    try:
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
        yield temporary
        temporary.chmod(_FOLDER_MODE)
        temporary.replace(path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = Problem(where=str(path), rule=f"cannot be written: {reason}")
        raise InputError(problem) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def check_free(path: Path) -> None:
    """Raise `InputError` unless nothing, or an empty folder, is at a path."""
    try:
        taken = path.exists() and not (path.is_dir() and not any(path.iterdir()))
    except (OSError, ValueError) as error:
        raise InputError(Problem(where=str(path), rule=f"cannot be written: {error}")) from error
    if taken:
        found = "a folder that is not empty" if path.is_dir() else "a file"
        rule = "is there already, and nothing is overwritten"
        fix = "another folder, or remove this one"
        raise InputError(Problem(where=str(path), found=found, rule=rule, fix=fix))
