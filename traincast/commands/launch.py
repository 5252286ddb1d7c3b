"""`traincast launch`: launch files of frameworks, written for a layout and read as a scenario."""

from __future__ import annotations

import typer

from traincast.commands.launch_export import export_launch
from traincast.commands.launch_import import import_launch

launch = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Write the launch files of a layout for a framework, or forecast existing ones.",
)
for _name, _verb in (("export", export_launch), ("import", import_launch)):
    launch.command(_name)(_verb)
