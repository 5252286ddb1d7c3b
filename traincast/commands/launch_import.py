"""`traincast launch import`: a scenario from the launch files of a framework."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traincast.commands.launch_tool import TOOL_NAMES, tool_named
from traincast.commands.output import STDOUT, check_files, check_targets, console, write

if TYPE_CHECKING:
    from planner.launch.records import Imported

_VARIABLE = re.compile(r"[\w.-]+")


_Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="A script, TOML, JSON or YAML file; with DeepSpeed its JSON file and the script.",
    ),
]
_Out = Annotated[str, typer.Option("--out", "-o", metavar="FILE.toml", help="Scenario to write.")]
_Tool = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help=f"Framework: {TOOL_NAMES} [default: recognised by the files]."
    ),
]
_Cluster = Annotated[
    str | None, typer.Option(metavar="PROFILE", help="Machine: no launch file names one.")
]
_Nodes = Annotated[
    int | None, typer.Option(min=1, help="Nodes of it [default: what the files say].")
]
_Model = Annotated[
    str | None, typer.Option(metavar="NAME", help="For files that do not describe a model.")
]
_Length = Annotated[int | None, typer.Option(min=1, help="For files that do not say it.")]
_Stack = Annotated[
    str | None, typer.Option(metavar="NAME", help="Software [default: the framework's].")
]
_Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="A shell variable or key that files leave open."
    ),
]
_Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY", help="A key that changes neither compute nor memory."),
]


def import_launch(
    files: _Files,
    *,
    out: _Out,
    tool: _Tool = None,
    cluster: _Cluster = None,
    nodes: _Nodes = None,
    model: _Model = None,
    seq_length: _Length = None,
    stack: _Stack = None,
    setting: _Set = None,
    ignore: _Ignore = None,
) -> None:
    """Write the scenario that launch files describe: then `traincast simulate` forecasts it.

    Every key is followed, listed as without effect on the forecast, or refused by name.
    """
    for file in files:
        check_targets(file, out=out)
    from planner.launch.importing import import_files
    from planner.launch.records import ImportOptions, LaunchFile
    from simulator.files import read_text

    chosen = None if tool is None else tool_named(tool)
    options = ImportOptions(
        cluster=cluster,
        nodes=nodes,
        model=model,
        seq_length=seq_length,
        stack=stack,
        ignore=frozenset(ignore or ()),
        variables=_settings(setting or []),
    )
    texts = [LaunchFile(name=file, text=read_text(file)) for file in files]
    stem = "imported" if out == STDOUT else Path(out).stem
    found = import_files(texts, options, tool=chosen, stem=stem)
    _check_stream(found, out)
    targets = [_folder(out) / beside.name for beside in found.files]
    check_files([*targets, *([] if out == STDOUT else [Path(out)])], files)
    for beside in found.files:
        write(beside.text, str(_folder(out) / beside.name))
    write(found.scenario, out)
    if out != STDOUT:
        _print(found, out)


def _check_stream(found: Imported, out: str) -> None:
    """Raise `InputError` where a scenario that names files beside it has no place of its own."""
    from simulator.errors import InputError, Problem

    if out == STDOUT and found.files:
        names = " and ".join(file.name for file in found.files)
        rule, fix = f"this scenario goes with {names}, which needs a folder", "--out FILE.toml"
        raise InputError(Problem(key="--out", found=STDOUT, rule=rule, fix=fix))


def _folder(out: str) -> Path:
    return Path() if out == STDOUT else Path(out).parent


def _settings(texts: list[str]) -> dict[str, str]:
    from simulator.errors import InputError, Problem

    found = {}
    for text in texts:
        name, joined, value = text.partition("=")
        if not joined or not _VARIABLE.fullmatch(name.lstrip("-")):
            rule, fix = "must be NAME=VALUE", "--set GPUS_PER_NODE=8"
            raise InputError(Problem(key="--set", found=text[:60], rule=rule, fix=fix))
        found[name] = value
    return found


def _print(found: Imported, out: str) -> None:
    from reports.quantities import counted, plain
    from reports.table import print_text

    terminal = console()
    print_text(terminal, f"{found.tool}: {counted(len(found.read), 'key')} followed")
    if found.unused:
        names = plain(", ".join(found.unused))
        print_text(terminal, f"without effect on the forecast: {names}")
    for note in found.notes:
        print_text(terminal, f"note: {plain(note)}")
    for file in found.files:
        terminal.print(f"wrote {_folder(out) / file.name}", style="dim", soft_wrap=True)
    terminal.print(f"wrote {out}", style="dim", soft_wrap=True)
    terminal.print(f"next: traincast simulate {out}", style="dim", soft_wrap=True)
