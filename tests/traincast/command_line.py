"""The command line, run in this process, and what each outcome of it must look like."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from traincast.cli import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a run of the command line left behind."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> Any:
        """What was written to standard output, as JSON with finite numbers only."""
        return json.loads(self.out, parse_constant=_refuse)


def run(*arguments: object) -> Outcome:
    """Run the command line; an exception that escapes it is a bug and escapes from here."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Outcome(code=code, out=out.getvalue(), err=err.getvalue())


def _refuse(constant: str) -> float:
    raise AssertionError(f"{constant} in JSON output")
