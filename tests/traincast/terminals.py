"""The command line as it meets a terminal: run in a child, on a pseudo-terminal or in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from traincast.cli import main

_TERMINAL = "xterm-256color"
_LINES = 50
_CHUNK = 65536
_ESCAPED = 70
"""Exit code of a child out of which an exception came."""
_OURS = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TERM", "COLORTERM", "PYTHONIOENCODING")
_CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_COLOUR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|4[0-7]|38|48|9[0-7])[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a run of the command line showed."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard output without what controls a terminal."""
        return _CODES.sub("", self.out).split("\n")

    @property
    def is_plain(self) -> bool:
        """Whether nothing in standard output controls a terminal."""
        return "\x1b" not in self.out

    @property
    def is_coloured(self) -> bool:
        """Whether standard output has a colour: bold and dim are none."""
        return _COLOUR.search(self.out) is not None


def on_terminal(arguments: Sequence[str], width: int, **environment: str) -> Shown:
    """Run the command line on a terminal so many cells wide; standard error is a pipe."""
    return _run(arguments, _terminal(width), os.pipe(), {"TERM": _TERMINAL, **environment})


def in_pipe(arguments: Sequence[str], **environment: str) -> Shown:
    """Run the command line with its output in a pipe, as most shells' scripts do."""
    return _run(arguments, os.pipe(), os.pipe(), {"TERM": _TERMINAL, **environment})


def in_closed_pipe(arguments: Sequence[str]) -> Shown:
    """Run the command line with a reader that has gone, as `head -1` has."""
    reading, writing = os.pipe()
    os.close(reading)
    nothing = os.open(os.devnull, os.O_RDONLY)
    return _run(arguments, (nothing, writing), os.pipe(), {"TERM": _TERMINAL})


def with_progress(arguments: Sequence[str], width: int, **environment: str) -> Shown:
    """Run the command line with standard error on a terminal, and its output in a pipe."""
    return _run(arguments, os.pipe(), _terminal(width), {"TERM": _TERMINAL, **environment})


def _terminal(width: int) -> tuple[int, int]:
    """Return the end of a new terminal that is read, and the one that is written to."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, width, 0, 0))
    return master, slave


def _run(
    arguments: Sequence[str],
    out: tuple[int, int],
    err: tuple[int, int],
    environment: Mapping[str, str],
) -> Shown:
    child = os.fork()
    if child == 0:
        _play(arguments, out[1], err[1], environment)
    os.close(out[1])
    os.close(err[1])
    shown, complaints = _read_all(out[0], err[0])
    _, status = os.waitpid(child, 0)
    return Shown(code=os.waitstatus_to_exitcode(status), out=shown, err=complaints)


def _play(arguments: Sequence[str], out: int, err: int, environment: Mapping[str, str]) -> NoReturn:
    """Run the command line in this child, and end it; what escapes is written, as Python would."""
    code = _ESCAPED
    try:
        for name in _OURS:
            os.environ.pop(name, None)
        os.environ.update(environment)
        os.dup2(out, 1)
        os.dup2(err, 2)
        encoding = environment.get("PYTHONIOENCODING", "utf-8")
        sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding=encoding, closefd=False)  # noqa: SIM115
        code = main(list(arguments))
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
        code = _ESCAPED
    os._exit(code)


def _read_all(*ends: int) -> list[str]:
    """Return what comes from each until it is closed; a terminal's end says so by an error."""
    found = dict.fromkeys(ends, b"")
    open_ends = list(ends)
    while open_ends:
        for end in select.select(open_ends, [], [])[0]:
            try:
                part = os.read(end, _CHUNK)
            except OSError:
                part = b""
            found[end] += part
            if not part:
                open_ends.remove(end)
                os.close(end)
    return [found[end].decode("utf-8", "replace").replace("\r\n", "\n") for end in ends]
