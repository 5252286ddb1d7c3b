"""`traincast calibrate report`: what was measured, and how well a profile fits it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traincast.commands.output import as_json, check_targets, console, progress_bar, write_all
from traincast.commands.pages import PageLanguage, check_page, page_of

if TYPE_CHECKING:
    from calibrate.summary import Summary


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
        typer.Option("--out", "-o", metavar="FILE", help="report.html, report.md or report.pdf."),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(metavar="OUT", help="Write what the report says as JSON ('-': stdout)."),
    ] = None,
    lang: Annotated[
        PageLanguage, typer.Option(help="Language of the page.")
    ] = PageLanguage.ENGLISH,
    browser: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Chromium or Chrome, for .pdf [default: on the PATH]."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Report a calibration: points, errors, rates beside the data sheet, slow ranks, clocks."""
    if out is not None:
        check_page(out)
    tables = check_targets(folder, out=out, json=json)
    from reports.calibration_record import calibration_record
    from reports.calibration_sections import report_sections
    from reports.calibration_view import print_sections

    with progress_bar("fitting and comparing", quiet=quiet, counted=False):
        found = _summary(Path(folder), profile, base)
    write_all(
        (json, lambda: as_json(calibration_record(found))),
        (out, lambda: _page(found, Path(folder), str(out), lang, browser)),
    )
    if tables and out is None:
        print_sections(console(), report_sections(found))
    elif tables:
        console().print(f"wrote {out}", style="dim", soft_wrap=True)


def _page(
    found: Summary, folder: Path, out: str, lang: PageLanguage, browser: str | None
) -> str | bytes:
    from reports.calibration_record import calibration_file
    from reports.page.document import document_of
    from reports.words import Language

    document = document_of((calibration_file(found, folder),), Language(lang.value))
    return page_of(document, out, browser)


def _summary(folder: Path, profile: str | None, base: str | None) -> Summary:
    from calibrate.report_input import summarise_folder

    return summarise_folder(folder, profile=profile, base=base)
