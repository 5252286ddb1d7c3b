"""`traincast report`: a page that a team can decide from, made of result files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.errors import InputError, Problem
from traincast.commands.output import check_files, console, progress_bar
from traincast.commands.pages import PageLanguage, check_page, page_of
from traincast.commands.targets import check_folders, check_writable

if TYPE_CHECKING:
    from reports.page.document import Document


class FigureFormat(StrEnum):
    """How figures are written to files."""

    PNG = "png"
    SVG = "svg"


class TableFormat(StrEnum):
    """How tables are written to files."""

    CSV = "csv"
    PARQUET = "parquet"


def report(
    results: Annotated[
        list[str],
        typer.Argument(metavar="RESULT.json...", help="What verbs wrote with --json."),
    ],
    *,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE", help="report.html, report.md or report.pdf."),
    ] = None,
    figures: Annotated[
        str | None, typer.Option(metavar="DIR", help="Write every figure into a folder.")
    ] = None,
    figure_format: Annotated[FigureFormat, typer.Option(help="Of --figures.")] = FigureFormat.PNG,
    tables: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write every table and the numbers of every figure."),
    ] = None,
    table_format: Annotated[TableFormat, typer.Option(help="Of --tables.")] = TableFormat.CSV,
    lang: Annotated[PageLanguage, typer.Option(help="Language.")] = PageLanguage.ENGLISH,
    title: Annotated[str, typer.Option(help="Title [default: that of the first result].")] = "",
    browser: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Chromium or Chrome, for .pdf [default: on the PATH]."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Make one page of results: the decision in words, figures, tables; or files for documents.

    Reads result files only: nothing is computed anew.
    """
    _check(out, figures, tables, results)
    from reports.page.document import document_of
    from reports.result_files import load_results
    from reports.words import Language

    if tables is not None and table_format is TableFormat.PARQUET:
        from traincast.sweeps import check_parquet

        check_parquet("--table-format")
    with progress_bar("reading", quiet=quiet, counted=False):
        document = document_of(load_results(results), Language(lang.value), title)
    files: dict[Path, str | bytes] = {}
    with progress_bar("drawing", quiet=quiet) as tell:
        if figures is not None:
            files |= _figure_files(document, Path(figures), figure_format, tell)
    with progress_bar("writing", quiet=quiet, counted=False):
        if tables is not None:
            files |= _table_files(document, Path(tables), table_format)
        if out is not None:
            files = {Path(out): page_of(document, out, browser), **files}
        _write(files, results, {"--figures": figures, "--tables": tables})
    for name in files:
        console().print(f"wrote {name}", style="dim", soft_wrap=True)


def _check(out: str | None, figures: str | None, tables: str | None, results: list[str]) -> None:
    if out is None and figures is None and tables is None:
        rule = "says nothing of what to write"
        raise InputError(Problem(key="report", rule=rule, fix="-o report.html"))
    if out is not None:
        check_page(out)
        check_writable({"--out": out})
        check_files([Path(out)], results)
    check_folders(_given({"--figures": figures, "--tables": tables}))


def _given(folders: Mapping[str, str | None]) -> dict[str, str]:
    return {option: folder for option, folder in folders.items() if folder is not None}


def _write(
    files: Mapping[Path, str | bytes], results: list[str], folders: Mapping[str, str | None]
) -> None:
    """Write all files or none; a folder that is missing is made."""
    from simulator.files import write_together

    check_files(files, results)
    for option, folder in _given(folders).items():
        try:
            Path(folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            rule = f"cannot be made: {(error.strerror or str(error)).lower()}"
            problem = Problem(key=option, found=folder, rule=rule, fix="another folder")
            raise InputError(problem) from error
    write_together(files)


def _figure_files(
    document: Document,
    folder: Path,
    form: FigureFormat,
    tell: Callable[[int, int], None] | None,
) -> dict[Path, str | bytes]:
    from reports.drawing import png_of, svg_of
    from reports.page.html import figure_id

    named = [
        (figure_id(part.name, number, figure), figure)
        for part in document.parts
        for number, figure in enumerate(part.figures)
    ]
    found: dict[Path, str | bytes] = {}
    for done, (name, figure) in enumerate(named, start=1):
        drawn = png_of(figure) if form is FigureFormat.PNG else f"{svg_of(figure, name)}\n"
        found[folder / f"{name}.{form}"] = drawn
        if tell is not None:
            tell(done, len(named))
    return found


def _table_files(document: Document, folder: Path, form: TableFormat) -> dict[Path, str | bytes]:
    from reports.page.tables import table_frames
    from traincast.sweeps import parquet_bytes

    return {
        folder / f"{name}.{form}": (
            parquet_bytes(frame) if form is TableFormat.PARQUET else frame.to_csv(index=False)
        )
        for name, frame in table_frames(document)
    }
