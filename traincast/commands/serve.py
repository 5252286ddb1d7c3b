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
    place = Path(folder) if folder is not None else Path(scenario or ".").parent
    text = _text(scenario)
    if not place.is_dir():
        rule = "must be a folder that exists"
        raise InputError(Problem(key="--folder", found=str(place), rule=rule, fix="--folder ."))
    from traincast.serve.server import serve as serve_page

    name = Path(scenario).name if scenario is not None else "scenario.toml"
    serve_page(text, name, place.resolve(), port, lambda at: _ready(at, browser=browser))


def _text(scenario: str | None) -> str:
    from simulator.files import read_text

    if scenario is not None:
        return read_text(scenario)
    return files("traincast.serve").joinpath("start.toml").read_text("utf-8")


def _ready(address: str, *, browser: bool) -> None:
    out = console()
    out.print(f"{address}  (Ctrl-C ends it)", soft_wrap=True)
    out.file.flush()
    if browser:
        import webbrowser

        webbrowser.open(address)
