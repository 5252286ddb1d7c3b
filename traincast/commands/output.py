"""What all verbs share: where results go, and that nothing else goes to standard output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.errors import InputError, Problem
from traincast.commands.targets import check_writable

if TYPE_CHECKING:
    from rich.console import Console

STDOUT = "-"
_PIPED_WIDTH = 120
_HEIGHT = 25
"""Lines, which nothing depends on; without it rich takes every dumb terminal to be 80 wide."""
_BAR_WIDTH = 12
"""Cells of a progress bar, which leave room for its words at 40."""


def console() -> Console:
    """Return the console for tables; `NO_COLOR` and `COLUMNS` are honoured.

    Piped output is as wide as `COLUMNS`, or else as every table needs at most.
    """
    from rich.console import Console

    return Console(width=_width(), height=_HEIGHT, highlight=False, markup=False, emoji=False)


def _width() -> int | None:
    """Return the cells of a line; None where a terminal does not say."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    if not sys.stdout.isatty():
        return _PIPED_WIDTH
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except OSError:
        return None


def as_json(record: Mapping[str, Any] | list[Any], *, compact: bool = False) -> str:
    """Return a record as JSON text; a number that is not finite is a bug and raises."""
    if compact:
        return json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
    return _indented(record, "") + "\n"


def _indented(value: Any, margin: str) -> str:
    """Return JSON with a line a key; a list of plain values is one line, however long."""
    inner = margin + "  "
    if isinstance(value, Mapping) and value:
        lines = (f"{json.dumps(str(key))}: {_indented(each, inner)}" for key, each in value.items())
        return "{\n" + ",\n".join(inner + line for line in lines) + f"\n{margin}}}"
    if isinstance(value, list) and any(isinstance(each, Mapping | list | tuple) for each in value):
        lines = (_indented(each, inner) for each in value)
        return "[\n" + ",\n".join(inner + line for line in lines) + f"\n{margin}]"
    return json.dumps(value, allow_nan=False)


def write(text: str, target: str) -> None:
    """Write `text` to a file, or to standard output where `target` is "-"."""
    if target == STDOUT:
        sys.stdout.write(text)
        return
    from simulator.files import write_atomic

    write_atomic(target, text)


def write_all(*outputs: tuple[str | None, Callable[[], str | bytes]]) -> None:
    """Write several outputs, all of them or none, each where it is wanted and made just before.

    An output is its target (None: not wanted) and what makes it.

    Raises:
        InputError: one of the files cannot be written.
    """
    from simulator.files import write_together

    made = [(target, make()) for target, make in outputs if target is not None]
    write_together({Path(target): data for target, data in made if target != STDOUT})
    for target, data in made:
        if target == STDOUT and isinstance(data, bytes):
            write_bytes(data, STDOUT)
        elif target == STDOUT:
            write(str(data), STDOUT)


def write_bytes(data: bytes, target: str) -> None:
    """Write `data`, which is no text, to a file, or to standard output where `target` is "-"."""
    if target == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    from simulator.files import write_bytes_atomic

    write_bytes_atomic(target, data)


@contextmanager
def progress_bar(
    what: str, *, quiet: bool, counted: bool = True
) -> Iterator[Callable[[int, int], None] | None]:
    """Give a callback that draws a bar on a terminal's standard error, or None.

    What is counted has the time that is left; what is not has a bar that only moves, and the time
    that has passed.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns: list[ProgressColumn] = [TextColumn(what), BarColumn(bar_width=_BAR_WIDTH)]
    columns += [MofNCompleteColumn()] if counted else []
    columns.append(TimeRemainingColumn(compact=True) if counted else TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


def check_targets(source: str, **targets: str | None) -> bool:
    """Return whether standard output is free for tables.

    Raises:
        InputError: two outputs want standard output or one file, or one wants the file `source`;
            or a file cannot be written: asked here, so that nobody waits for what is then lost.
    """
    wanting = [f"--{name}" for name, target in targets.items() if target == STDOUT]
    if len(wanting) > 1:
        rule = "only one output can go to standard output"
        raise InputError(Problem(key=" and ".join(wanting), rule=rule, fix="name a file for one"))
    taken = {_place(source): "the input"}
    for name, target in targets.items():
        if target is None or target == STDOUT:
            continue
        user = taken.setdefault(_place(target), f"--{name}")
        if user != f"--{name}" and not _is_device(target):
            rule = f"would overwrite {user}"
            raise InputError(Problem(key=f"--{name}", found=target, rule=rule, fix="another file"))
    check_writable({f"--{n}": t for n, t in targets.items() if t is not None and t != STDOUT})
    return not wanting


def check_files(files: Iterable[Path], inputs: Iterable[str]) -> None:
    """Raise `InputError` where one of the files to write together is an input or a folder."""
    given = {_place(path) for path in inputs}
    problems = [
        Problem(where=str(file), rule=rule, fix="another --out")
        for file in files
        for rule, wrong in (
            ("would overwrite an input", _place(str(file)) in given),
            ("cannot be written: is a directory", file.is_dir()),
        )
        if wrong
    ]
    if problems:
        raise InputError(*problems)


def same_place(one: str, other: str) -> bool:
    """Return whether two paths lead to the same file or folder."""
    return _place(one) == _place(other)


def _place(path: str) -> str:
    """Return the file that a path leads to; one that no file can have stays as it is."""
    return path if "\0" in path else os.path.realpath(path)


def _is_device(target: str) -> bool:
    from simulator.files import is_there

    return is_there(target) and not Path(target).is_file()
