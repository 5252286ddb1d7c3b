"""`traincast serve`: a local page to change a scenario and see what becomes of it."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from simulator.errors import InputError, Problem
from traincast.commands.output import console


def serve(
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="[SCENARIO]", help="Scenario file (.toml) [default: a first one]."),
    ] = None,
    *,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but 127.0.0.1 lets others in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free one.")] = 8050,
    folder: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="The only place that is written to [default: the scenario's folder].",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Open a local page: a scenario in a form, with estimate, memory and layout map at once."""
    if find_spec("dash") is None:
        rule, fix = "needs the package dash", 'pip install "traincast[serve]"'
        raise InputError(Problem(key="serve", rule=rule, fix=fix))
    text = _text(scenario)
    place = Path(folder) if folder is not None else Path(scenario or ".").parent
    if not place.is_dir():
        rule = "must be a folder that exists"
        raise InputError(Problem(key="--folder", found=str(place), rule=rule, fix="."))
    from traincast.serve.guard import is_loopback
    from traincast.serve.server import Address
    from traincast.serve.server import serve as serve_page

    if not is_loopback(host):
        _warn(host, place)
    name = Path(scenario).name if scenario is not None else "scenario.toml"
    address = Address(host=host, port=port)
    serve_page(text, name, place.resolve(), address, lambda at: _ready(at, browser=browser))


def _text(scenario: str | None) -> str:
    from simulator.files import read_text
    from traincast.serve.editing import MAX_TEXT_BYTES

    if scenario is None:
        return files("traincast.serve").joinpath("start.toml").read_text("utf-8")
    return read_text(scenario, MAX_TEXT_BYTES)


def _ready(address: str, *, browser: bool) -> None:
    out = console()
    out.print(f"{address}  (Ctrl-C ends it)", soft_wrap=True)
    if browser:
        import webbrowser

        webbrowser.open(address)


def _warn(host: str, folder: Path) -> None:
    from rich.console import Console

    text = (
        f"warning: whoever reaches {host} can use this page without a password: read scenario and "
        f"profile files of this machine, and save .toml files in {folder.resolve()}"
    )
    Console(stderr=True, highlight=False, markup=False).print(text, style="yellow", soft_wrap=True)
