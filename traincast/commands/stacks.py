"""`traincast stacks`: the software stacks that are shipped, and what a stack says."""

from __future__ import annotations

from typing import Annotated

import typer

from traincast.commands.output import as_json, console, write


def stacks(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A shipped stack or a .toml file; left out: list all."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
) -> None:
    """List the shipped training stacks, or show one with its sources."""
    from reports.catalogue_view import print_stack, print_stacks
    from simulator.workload.stack import load_stack, stack_names

    if name is None:
        records = [load_stack(each).model_dump(mode="json") for each in stack_names()]
        if json:
            write(as_json(records), "-")
        else:
            print_stacks(console(), records)
        return
    record = load_stack(name).model_dump(mode="json")
    if json:
        write(as_json(record), "-")
    else:
        print_stack(console(), record)
