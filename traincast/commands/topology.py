"""`traincast topology`: show a network, check its file, import it from what other tools write."""

from __future__ import annotations

import typer

from traincast.commands.topology_import import import_topologies
from traincast.commands.topology_show import check_topology, show_topology

topology = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show a network, check its file, or import it from what other tools write.",
)
for _name, _verb in (
    ("show", show_topology),
    ("check", check_topology),
    ("import", import_topologies),
):
    topology.command(_name)(_verb)
