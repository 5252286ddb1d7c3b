"""`traincast profiles`: the machines that are shipped, and what a profile says."""

from __future__ import annotations

from typing import Annotated

import typer

from traincast.commands.output import as_json, console, write


def profiles(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="A shipped profile or a .toml file; left out: list all."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
) -> None:
    """List the shipped hardware profiles, or show one with its sources."""
    from reports.catalogue import profile_record, profile_row
    from reports.catalogue_view import print_profile, print_profiles
    from simulator.hardware.profile import load_profile, profile_names

    if name is None:
        rows = [profile_row(load_profile(each)) for each in profile_names()]
        if json:
            write(as_json(rows), "-")
        else:
            print_profiles(console(), rows)
        return
    record = profile_record(load_profile(name))
    if json:
        write(as_json(record), "-")
    else:
        print_profile(console(), record)
