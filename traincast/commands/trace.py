"""`traincast trace`: a profiler's trace of a real run beside the forecast."""

from __future__ import annotations

import typer

from traincast.commands.trace_compare import compare_traces

trace = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Compare a profiler's trace of a real run with its forecast.",
)


@trace.callback()
def _group() -> None:
    """Compare a profiler's trace of a real run with its forecast."""


trace.command("compare")(compare_traces)
