"""`traincast calibrate report`: what was measured, and how well a profile fits it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.errors import InputError, Problem
from traincast.commands.output import as_json, check_targets, console, write

if TYPE_CHECKING:
    from calibrate.summary import Summary

_PAGES = (".html", ".md")


def report_calibration(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of measurements (*.jsonl).")],
    *,
    profile: Annotated[
        str | None,
        typer.Option(help="Profile to compare with [default: one that is fitted for the report]."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(help="Shipped profile beside it [default: that of the accelerator]."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write a page: report.html or report.md."),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(metavar="OUT", help="Write what the report says as JSON ('-': stdout)."),
    ] = None,
) -> None:
    """Report a calibration: points, errors, rates beside the data sheet, slow ranks, clocks."""
    _check_name(out)
    tables = check_targets(folder, out=out, json=json)
    from reports.calibration_record import calibration_record
    from reports.calibration_sections import report_sections
    from reports.calibration_view import print_sections

    found = _summary(Path(folder), profile, base)
    if json is not None:
        write(as_json(calibration_record(found)), json)
    if out is None:
        if tables:
            print_sections(console(), report_sections(found))
        return
    from reports.calibration_page import calibration_html, calibration_markdown

    page = calibration_html if out.endswith(".html") else calibration_markdown
    write(page(found), out)
    if tables:
        console().print(f"wrote {out}", style="dim", soft_wrap=True)


def _check_name(out: str | None) -> None:
    if out is not None and not out.endswith(_PAGES):
        rule = "must end with .html or .md, which says the format"
        raise InputError(Problem(key="--out", found=out, rule=rule, fix="report.html"))


def _summary(folder: Path, profile: str | None, base: str | None) -> Summary:
    from calibrate.report_input import summarise_folder

    return summarise_folder(folder, profile=profile, base=base)
