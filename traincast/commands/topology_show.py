"""`traincast topology show` and `check`: what a network is made of, and whether it is sound."""

from __future__ import annotations

from typing import Annotated

import typer

from traincast.commands.output import as_json, check_targets, console, write

_Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Topology file (.toml), shipped profile, or profile file."),
]
_Nodes = Annotated[
    int | None,
    typer.Option(min=1, help="Nodes [default: the file's units; of a profile, one domain]."),
]
_Profile = Annotated[
    str | None,
    typer.Option(help="Machine whose numbers a file leaves out [default: the one it names]."),
]


def show_topology(
    name: _Name,
    *,
    nodes: _Nodes = None,
    pair: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Show the route between two accelerators; repeatable."),
    ] = None,
    profile: _Profile = None,
    figure: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Draw a picture: topology.svg or topology.png."),
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the numbers as JSON ('-': stdout).")
    ] = None,
) -> None:
    """Show what a network is made of: cables, tiers, oversubscription, bisection, routes."""
    tables = check_targets(name, json=json, figure=figure)
    from reports.topology_record import topology_record
    from reports.topology_view import print_topology
    from simulator.topology.named import named_topology

    pairs = [_pair(text) for text in pair or ()]
    topology = named_topology(name, profile=profile, nodes=nodes)
    record = topology_record(topology, pairs)
    if json is not None:
        write(as_json(record), json)
    if figure is not None:
        from reports.drawing.files import save_figure
        from reports.report_figures.network import topology_diagrams

        save_figure(topology_diagrams(topology), figure)
    if tables:
        print_topology(console(), record)
        if figure is not None:
            console().print(f"wrote {figure}", style="dim", soft_wrap=True)


def check_topology(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Topology file (.toml).")],
    *,
    nodes: _Nodes = None,
    profile: _Profile = None,
) -> None:
    """Check that a topology file can be built, and that all accelerators reach each other."""
    from simulator.topology.named import named_topology

    topology = named_topology(file, profile=profile, nodes=nodes)
    parts = f"{topology.size:,} accelerators, {topology.links:,} links"
    console().print(f"{file}: fine ({parts})", soft_wrap=True)


def _pair(text: str) -> tuple[int, int]:
    """Return two accelerators by number. Raises `InputError` where a text is no such pair."""
    from simulator.errors import InputError, Problem

    one, comma, other = text.partition(",")
    if not comma or not one.strip().isdecimal() or not other.strip().isdecimal():
        rule = "must be the numbers of two accelerators"
        raise InputError(Problem(key="--pair", found=text[:40], rule=rule, fix="--pair 0,9"))
    return int(one), int(other)
