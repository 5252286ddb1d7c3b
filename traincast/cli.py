"""The command line: verbs, and what becomes of errors.

Exit codes: 0 fine, 1 infeasible or a failed check, 2 wrong usage or input, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, TextIO

import typer

from simulator.errors import EXIT_BAD_INPUT, InputError, Problem, TraincastError
from traincast.commands.calibrate import calibrate
from traincast.commands.compare import compare
from traincast.commands.explain import explain
from traincast.commands.goodput import goodput
from traincast.commands.launch import launch
from traincast.commands.models import models
from traincast.commands.place import place
from traincast.commands.plan import plan
from traincast.commands.profiles import profiles
from traincast.commands.replay import replay
from traincast.commands.report import report
from traincast.commands.serve import serve
from traincast.commands.simulate import simulate
from traincast.commands.stacks import stacks
from traincast.commands.sweep import sweep
from traincast.commands.topology import topology
from traincast.commands.trace import trace
from traincast.commands.validate import validate

_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_SHOWN = 60
"""Characters of an argument that are shown."""
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 1
"""The reader has gone; Python's own convention."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for _verb in (
    *(plan, explain, compare, sweep, simulate, goodput, place, replay, validate),
    *(report, serve, profiles, models, stacks),
):
    app.command()(_verb)
app.add_typer(calibrate, name="calibrate")
app.add_typer(topology, name="topology")
app.add_typer(launch, name="launch")
app.add_typer(trace, name="trace")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("traincast"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
) -> None:
    """Forecast distributed training runs: which layout, how long, how much memory."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    # A stream that the caller has closed is None.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        _check_text(sys.argv[1:] if arguments is None else arguments)
        code = _run(arguments)
        sys.stdout.flush()
    except TraincastError as error:
        return _report(error)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return EXIT_BROKEN_PIPE
    except OSError as error:
        _discard_output()
        where = str(error.filename or "standard output")
        problem = Problem(where=where, rule=f"cannot be written: {error.strerror}")
        return _report(InputError(problem))
    return code


def _check_text(arguments: Sequence[str]) -> None:
    """Raise `InputError` for arguments that are no text, which no result or page could hold.

    Python reads bytes that are not UTF-8 as halves of characters.
    """
    rule = "must be text in UTF-8, names of files too"
    fix = "type it anew, or rename the file"
    problems = [
        Problem(key=f"argument {number}", found=f"{each[:_SHOWN]!a}", rule=rule, fix=fix)
        for number, each in enumerate(arguments, start=1)
        if _NO_TEXT.search(each)
    ]
    if problems:
        raise InputError(*problems)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _discard_output() -> None:
    """Python would flush standard output once more at exit and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: Sequence[str] | None) -> int:
    """Run a verb; usage errors are printed by typer, which ends with 2."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="traincast")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_BAD_INPUT
    return 0


def _report(error: TraincastError) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"{error}\n")
    return error.exit_code
