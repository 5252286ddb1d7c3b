"""`traincast replay`: a traced step on the machine of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from simulator.errors import InputError, Problem
from traincast.commands.output import as_json, check_targets, console, progress_bar, write

if TYPE_CHECKING:
    from simulator.hardware.accelerator import Dtype


def replay(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder of Chakra traces, <name>.<rank>.et.")
    ],
    profile: Annotated[
        str, typer.Option(metavar="PROFILE", help="Machine: a shipped profile or a .toml file.")
    ],
    precision: Annotated[
        str, typer.Option(help="Of compute that the trace gives no duration of.")
    ] = "bf16",
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the result as JSON ('-': stdout).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Replay Chakra traces: step time and what ranks are busy with, beside the trace's times."""
    tables = check_targets(folder, json=json)

    from reports.replay_view import print_replay, replay_record
    from simulator.hardware.profile import load_profile
    from simulator.interchange.chakra_read import read_chakra
    from simulator.interchange.result import replay as replayed

    machine = load_profile(profile)
    with progress_bar("replaying", quiet=quiet, counted=False):
        workload, forecast = read_chakra(folder)
        found = replayed(workload, machine, _dtype(precision))
    record = replay_record(found, machine.name, forecast)
    if json is not None:
        write(as_json(record), json)
    if tables:
        print_replay(console(), record)


def _dtype(name: str) -> Dtype:
    from simulator.files import nearest
    from simulator.hardware.accelerator import Dtype

    names = [dtype.value for dtype in Dtype]
    if name not in names:
        rule, fix = "is not a precision", nearest(name, names)
        raise InputError(Problem(key="--precision", found=repr(name), rule=rule, fix=fix))
    return Dtype(name)
