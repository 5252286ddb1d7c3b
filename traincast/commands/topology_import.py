"""`traincast topology import`: what other tools write of a node or network, as a topology file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from traincast.commands.output import STDOUT, check_targets, console, write

if TYPE_CHECKING:
    from simulator.topology.imports.records import ImportOptions
    from simulator.topology.imports.write import Written

_Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Of a node: nvidia-smi topo -m, rocm-smi --showtopo, NCCL's topology XML. Of the "
        "network: Slurm's topology.conf. Of either or both: an edge list.",
    ),
]
_Out = Annotated[
    str, typer.Option("--out", "-o", metavar="FILE.toml", help="File to write ('-': stdout).")
]
_Profile = Annotated[
    str | None, typer.Option(help="Machine whose bandwidths stand where files have none.")
]
_Nodes = Annotated[
    int | None,
    typer.Option(min=1, help="Add the profile's network for so many nodes, if no file has one."),
]
_Link = Annotated[
    str | None,
    typer.Option(metavar='"25 GB/s"', help="Of one NVLink or xGMI link, one direction."),
]
_Sockets = Annotated[
    str | None,
    typer.Option(metavar='"22 GB/s"', help="Between two sockets or NUMA nodes, one direction."),
]
_Nics = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...", help="Cards of the network [default: those nearest to accelerators]."
    ),
]
_Ratio = Annotated[
    float | None, typer.Option(min=1, help="Oversubscription of leaves [default: the profile's].")
]


def import_topologies(
    files: _Files,
    *,
    out: _Out,
    profile: _Profile = None,
    nodes: _Nodes = None,
    link_bandwidth: _Link = None,
    socket_bandwidth: _Sockets = None,
    nics: _Nics = None,
    oversubscription: _Ratio = None,
    title: Annotated[str | None, typer.Option(help="One line for reports.")] = None,
) -> None:
    """Write a topology file from what other tools say of a node and of the network."""
    for file in files:
        check_targets(file, out=out)
    from simulator.hardware.profile import load_profile
    from simulator.topology.imports.records import ImportOptions
    from simulator.topology.imports.write import import_topology

    options = ImportOptions(
        profile=None if profile is None else load_profile(profile),
        profile_name=_beside(out, profile),
        link=_bandwidth("--link-bandwidth", link_bandwidth),
        sockets=_bandwidth("--socket-bandwidth", socket_bandwidth),
        nics=tuple(filter(None, (name.strip() for name in (nics or "").split(",")))),
        oversubscription=oversubscription,
    )
    written = import_topology(
        files,
        options,
        title=title or _title(files, options),
        read_on=datetime.now(UTC).date(),
        nodes=nodes,
    )
    write(written.text, out)
    if out != STDOUT:
        _print(written, out)


def _beside(out: str, profile: str | None) -> str:
    """Return how the written file names the profile: a file by its way from there."""
    import os
    from pathlib import Path

    if profile is None or not profile.endswith(".toml"):
        return profile or ""
    folder = Path() if out == STDOUT else Path(out).parent
    return os.path.relpath(profile, folder)


def _title(files: list[str], options: ImportOptions) -> str:
    from pathlib import Path

    names = ", ".join(Path(file).name for file in files)
    return f"{options.profile.name} as in {names}" if options.profile else f"as in {names}"


def _print(written: Written, out: str) -> None:
    """Print what each file was taken for, the notes, and what to do next."""
    from reports.quantities import plain
    from reports.table import print_text

    terminal = console()
    for found in written.imported:
        print_text(terminal, f"{plain(found.where)}: {found.format}")
        for note in found.notes:
            print_text(terminal, f"  {plain(str(note))}")
    for note in written.notes:
        print_text(terminal, plain(str(note)))
    terminal.print(f"wrote {out}", style="dim", soft_wrap=True)
    terminal.print(f"next: traincast topology show {out}", style="dim", soft_wrap=True)


def _bandwidth(option: str, text: str | None) -> float | None:
    """Return bytes/s of an option. Raises `InputError` where it is none."""
    from simulator.errors import InputError, Problem
    from simulator.units import Dimension, parse_quantity

    if text is None:
        return None
    try:
        value = parse_quantity(text, Dimension.BANDWIDTH)
    except ValueError as error:
        fix = f'{option} "25 GB/s"'
        raise InputError(Problem(key=option, found=text[:60], rule=str(error), fix=fix)) from error
    if value <= 0:
        raise InputError(Problem(key=option, found=text[:60], rule="must be positive"))
    return value
