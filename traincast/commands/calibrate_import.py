"""`traincast calibrate import`: measurements that other tools made, as calibration files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simulator.errors import InputError, Problem
from simulator.parallel.groups import Collective
from traincast.commands.output import as_json, check_targets, console, progress_bar, write
from traincast.commands.targets import check_folders

if TYPE_CHECKING:
    from calibrate.importing import Imported, ImportOptions


_Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Logs of nccl-tests or rccl-tests (text, CSV, JSON), traces of torch.profiler, "
        "CSV tables of collectives, kernels or steps.",
    ),
]
_Out = Annotated[str, typer.Option("--out", metavar="DIR", help="Folder to write to.")]
_Collective = Annotated[
    Collective | None, typer.Option(help="What was timed, where a file does not say.")
]
_Ranks = Annotated[
    int | None, typer.Option(min=2, help="Ranks of a group, where a file does not say.")
]
_Nodes = Annotated[
    int | None, typer.Option(min=1, help="Nodes of a group, where a file does not say.")
]
_PerNode = Annotated[
    int | None, typer.Option(min=1, help="Ranks on each node, where a file does not say.")
]
_Size = Annotated[
    str | None,
    typer.Option("--bytes", metavar='"1 GiB"', help="Size, for tables without such a column."),
]
_Accelerator = Annotated[
    str | None, typer.Option(help="Name of the accelerator, instead of what files say.")
]
_LineRate = Annotated[
    str | None,
    typer.Option(
        metavar='"450 GB/s"',
        help="Rate of a rank's fastest link; bandwidths far above it are rejected.",
    ),
]
_Json = Annotated[
    str | None, typer.Option(metavar="OUT", help="Write the summary as JSON ('-': stdout).")
]


def import_measurements(
    files: _Files,
    *,
    out: _Out,
    collective: _Collective = None,
    ranks: _Ranks = None,
    nodes: _Nodes = None,
    ranks_per_node: _PerNode = None,
    size: _Size = None,
    accelerator: _Accelerator = None,
    line_rate: _LineRate = None,
    json: _Json = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Turn logs, traces and tables of measurements into calibration files, one a file."""
    from calibrate.importing import ImportOptions
    from calibrate.records import Status

    tables = check_targets(files[0], json=json)
    check_folders({"--out": out})
    options = ImportOptions(
        collective=collective,
        ranks=ranks,
        nodes=nodes,
        per_node=ranks_per_node,
        bytes=_quantity("--bytes", size),
        accelerator=accelerator,
        line_rate=_quantity("--line-rate", line_rate),
    )
    with progress_bar("files", quiet=quiet) as report:
        rows, problems = _import_all([Path(file) for file in files], Path(out), options, report)
    if json is not None:
        write(as_json({"files": rows, "problems": [str(each) for each in problems]}), json)
    if tables:
        _print(rows)
        if any(row["status"].get(Status.OK) for row in rows):
            console().print(
                f"next: traincast calibrate fit {out} --out profile.toml", soft_wrap=True
            )
    if problems:
        raise InputError(*problems)


def _import_all(
    paths: list[Path],
    out: Path,
    options: ImportOptions,
    report: Callable[[int, int], None] | None,
) -> tuple[list[dict[str, Any]], list[Problem]]:
    """Import and write each file; return a row for each, and the problems of those that failed."""
    from calibrate.importing import import_file, output_names, write_imported

    rows: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for done, (path, name) in enumerate(output_names(paths).items()):
        if report is not None:
            report(done, len(paths))
        try:
            imported = import_file(path, options)
            written = write_imported(imported, out, name)
        except InputError as error:
            problems += error.problems
            continue
        rows.append(_row(path, imported, written))
    return rows, problems


def _row(path: Path, imported: Imported, written: Path) -> dict[str, Any]:
    from calibrate.import_records import counts

    records = imported.records
    kinds = dict.fromkeys(record.point.what for record in records)
    return {
        "file": str(path),
        "kind": imported.kind,
        "points": {kind: sum(r.point.what == kind for r in records) for kind in kinds},
        "status": {status.value: count for status, count in counts(records).items()},
        "notes": [str(note) for note in imported.notes],
        "written": str(written),
    }


def _print(rows: list[dict[str, Any]]) -> None:
    from reports.quantities import plain
    from reports.section import words
    from reports.table import print_table, print_text

    terminal = console()
    columns = [
        words("file", [Path(row["file"]).name for row in rows]),
        words("taken for", [row["kind"] for row in rows]),
        words("points", [_counts(row["points"]) for row in rows]),
        words("status", [_counts(row["status"]) for row in rows]),
    ]
    if rows:
        print_table(terminal, columns)
    for row in rows:
        for note in row["notes"]:
            print_text(terminal, plain(note))
    for row in rows:
        terminal.print(f"wrote {row['written']}", style="dim", soft_wrap=True)


def _counts(named: dict[str, int]) -> str:
    """Return "6 collective, 2 gemm", or none."""
    return ", ".join(f"{count} {name}" for name, count in named.items()) or "none"


def _quantity(option: str, text: str | None) -> float | None:
    """Return an option with a unit in inside units. Raises `InputError` where it is none."""
    from simulator.units import Dimension, parse_quantity

    if text is None:
        return None
    dimension = Dimension.SIZE if option == "--bytes" else Dimension.BANDWIDTH
    try:
        value = parse_quantity(text, dimension)
    except ValueError as error:
        fix = f'{option} "{"1 GiB" if option == "--bytes" else "450 GB/s"}"'
        raise InputError(Problem(key=option, found=text[:60], rule=str(error), fix=fix)) from error
    if value <= 0:
        raise InputError(Problem(key=option, found=text[:60], rule="must be positive"))
    return value
