"""`traincast calibrate fit`: a folder of measurements becomes a profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from traincast.commands.output import (
    STDOUT,
    as_json,
    check_targets,
    console,
    progress_bar,
    write_all,
)


def fit_profile(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of measurements (*.jsonl).")],
    *,
    out: Annotated[
        str, typer.Option("--out", metavar="FILE.toml", help="Profile to write ('-': stdout).")
    ],
    base: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE",
            help="Profile to start from: a shipped name or a .toml file; else the shipped one of "
            "the measured accelerator.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the profile; else the base's with -calibrated.")
    ] = None,
    accept_software_differences: Annotated[
        bool,
        typer.Option(
            "--accept-software-differences",
            help="Fit files of different drivers, releases or variables together.",
        ),
    ] = False,
    seed: Annotated[
        int, typer.Option(help="Draws the fifth of the points that is held out for the check.")
    ] = 0,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write the result as JSON ('-': stdout).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Fit a profile to measurements: what was not measured, or fits worse, stays the base's."""
    tables = check_targets(folder, out=out, json=json)
    from calibrate.fit import fit_folder
    from reports.calibration_fit import fit_sections, fit_table
    from reports.calibration_view import print_sections

    with progress_bar("fitting", quiet=quiet, counted=False):
        fitted = fit_folder(
            Path(folder),
            base=base,
            name=name,
            accept_software_differences=accept_software_differences,
            seed=seed,
        )
    write_all((out, lambda: fitted.profile_text), (json, lambda: as_json(fit_table(fitted))))
    if tables:
        print_sections(console(), fit_sections(fitted), "see --json")
    if tables and out != STDOUT:
        console().print(f"wrote {out}", style="dim", soft_wrap=True)
        following = f"next: traincast calibrate check {folder} --profile {out}"
        console().print(following, style="dim", soft_wrap=True)
