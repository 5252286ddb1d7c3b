"""`traincast report`: a page that a team can decide from, made of result files."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from simulator.errors import InputError, Problem
from traincast.commands.output import check_files, console, progress_bar, write, write_bytes
from traincast.commands.pages import PageLanguage, check_page, write_page

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
    for key, folder in (("--figures", figures), ("--tables", tables)):
        if folder is not None:
            _make(Path(folder), key)
    with progress_bar("reading and writing", quiet=quiet, counted=False):
        document = document_of(load_results(results), Language(lang.value), title)
        if out is not None:
            write_page(document, out, browser)
    written = [] if out is None else [out]
    if figures is not None:
        written += _write_figures(document, Path(figures), figure_format, quiet=quiet)
    if tables is not None:
        written += _write_tables(document, Path(tables), table_format)
    for name in written:
        console().print(f"wrote {name}", style="dim", soft_wrap=True)


def _check(out: str | None, figures: str | None, tables: str | None, results: list[str]) -> None:
    if out is None and figures is None and tables is None:
        rule = "says nothing of what to write"
        raise InputError(Problem(key="report", rule=rule, fix="-o report.html"))
    if out is not None:
        check_page(out)
        check_files([Path(out)], results)
    for key, folder in (("--figures", figures), ("--tables", tables)):
        if folder is not None and Path(folder).exists() and not Path(folder).is_dir():
            rule = "must be a folder, or the name of a new one"
            raise InputError(Problem(key=key, found=folder, rule=rule, fix="another name"))


def _write_figures(
    document: Document, folder: Path, form: FigureFormat, *, quiet: bool
) -> list[str]:
    from reports.drawing import save_figure
    from reports.page.html import figure_id

    named = [
        (folder / f"{figure_id(part.name, number, figure)}.{form}", figure)
        for part in document.parts
        for number, figure in enumerate(part.figures)
    ]
    with progress_bar("figures", quiet=quiet or len(named) == 1) as tell:
        for done, (path, figure) in enumerate(named, start=1):
            save_figure(figure, path)
            if tell is not None:
                tell(done, len(named))
    return [str(path) for path, _ in named]


def _write_tables(document: Document, folder: Path, form: TableFormat) -> list[str]:
    from reports.page.tables import table_frames
    from traincast.sweeps import parquet_bytes

    written = []
    for name, frame in table_frames(document):
        path = str(folder / f"{name}.{form}")
        if form is TableFormat.PARQUET:
            write_bytes(parquet_bytes(frame), path)
        else:
            write(frame.to_csv(index=False), path)
        written.append(path)
    return written


def _make(folder: Path, key: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = f"cannot be made: {(error.strerror or str(error)).lower()}"
        raise InputError(Problem(key=key, found=str(folder), rule=rule)) from error
