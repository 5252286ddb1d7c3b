"""`traincast models`: the models that are shipped, and what a model or an imported config says."""

from __future__ import annotations

from typing import Annotated

import typer

from traincast.commands.output import as_json, console, write


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A shipped model, a .toml file, or a Hugging Face config.json; else list all.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Write JSON to stdout.")] = False,
) -> None:
    """List the shipped models, or show one (or an imported config) with its parameter counts."""
    from reports.catalogue import model_record, model_row
    from reports.catalogue_view import print_model, print_models
    from simulator.workload.load import load_model, model_names

    if name is None:
        rows = [model_row(load_model(each).spec) for each in model_names()]
        if json:
            write(as_json(rows), "-")
        else:
            print_models(console(), rows)
        return
    record = model_record(load_model(name))
    if json:
        write(as_json(record), "-")
    else:
        print_model(console(), record)
