"""Measurements that other tools made, as calibration lines; files are known by their content."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from calibrate.import_kineto import import_trace
from calibrate.import_nccl import looks_like_log, read_log
from calibrate.import_nccl_json import runs_of_json
from calibrate.import_options import Companion, Imported, ImportOptions
from calibrate.import_runs import imported_runs
from calibrate.import_tables import import_table, looks_like_table
from calibrate.import_text import read_head, read_whole
from simulator.errors import InputError, Problem
from simulator.files import write_atomic

__all__ = ["ImportOptions", "Imported", "import_file", "output_names", "write_imported"]

_TRACE = re.compile(r'"traceEvents"\s*:|"schemaVersion"\s*:|"ph"\s*:\s*"')
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:\{|\]))")
_OURS = re.compile(r'\s*\{\s*"line"\s*:\s*"(?:header|record)"')
_KNOWN = (
    "a log of nccl-tests or rccl-tests, their CSV or JSON; a trace of torch.profiler (.json or"
    " .json.gz); a CSV table of collectives, matrix products, attention calls or training steps"
)
SUFFIX = ".jsonl"
_IMPORTED = b'"made_by":"calibrate import'
"""In the header of a file that may be replaced."""
_LONGEST_HEADER = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of file: how its beginning looks, and what reads it."""

    looks: Callable[[str], bool]
    read: Callable[[Path, ImportOptions], Imported]


def import_file(path: Path, options: ImportOptions) -> Imported:
    """Return one file as calibration lines, with all that was left out, derived or flagged.

    Raises:
        InputError: it cannot be read, is of no known kind, or says too little; the problem names
            the option that supplies what is missing.
    """
    head = read_head(path)
    if _OURS.match(head):
        rule = "is a calibration file already"
        raise InputError(Problem(where=str(path), rule=rule, fix="put it into the folder to fit"))
    kind = next((kind for kind in _KINDS if kind.looks(head)), None)
    if kind is None:
        first = next(line.strip() for line in head.split("\n") if line.strip())
        rule = "is of no kind that can be imported"
        raise InputError(Problem(where=str(path), rule=rule, found=first[:80], fix=_KNOWN))
    return kind.read(path, options)


def output_names(paths: Sequence[Path]) -> dict[Path, str]:
    """Return the name of the calibration file that each file is imported to.

    Files of the same name are told apart by the folders that they lie in.

    >>> list(output_names([Path("a/x.log"), Path("b/x.log"), Path("y.log")]).values())
    ['a_x.log.jsonl', 'b_x.log.jsonl', 'y.log.jsonl']
    """
    files = list(dict.fromkeys(paths))
    names = {path: path.name for path in files}
    for depth in range(2, 1 + max((len(path.parts) for path in files), default=0)):
        taken = Counter(names.values())
        for path in files:
            if taken[names[path]] > 1:
                names[path] = "_".join(part.strip("/") for part in path.parts[-depth:])
    taken = Counter(names.values())
    numbers = {path: str(number) for number, path in enumerate(files, start=1)}
    return {
        path: f"{name}{SUFFIX}" if taken[name] == 1 else f"{name}.{numbers[path]}{SUFFIX}"
        for path, name in names.items()
    }


def write_imported(imported: Imported, folder: Path, name: str) -> Path:
    """Write calibration lines, and the models and stacks that they name; return the file.

    An imported file of that name is replaced, so that importing a file again changes nothing.

    Raises:
        InputError: the folder or a file in it cannot be written.
    """
    target = folder / name
    if target.is_file() and _IMPORTED not in _first_line(target):
        rule, fix = "was not written by `calibrate import` and stays as it is", "another --out"
        raise InputError(Problem(where=str(target), rule=rule, fix=fix))
    try:
        for place, _ in imported.files:
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        rule = f"cannot be made: {(error.strerror or str(error)).lower()}"
        raise InputError(Problem(where=str(folder), rule=rule)) from error
    for place, companion in imported.files:
        write_atomic(folder / place, _toml(companion))
    write_atomic(target, "".join(f"{line.model_dump_json()}\n" for line in imported.lines))
    return target


def _first_line(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.readline(_LONGEST_HEADER)


def _toml(companion: Companion) -> str:
    table = companion.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    return tomlkit.dumps(table)


def _read_json(path: Path, options: ImportOptions) -> Imported:
    runs = runs_of_json(read_whole(path))
    if runs is None:
        rule = "is JSON, but of no kind that can be imported"
        raise InputError(Problem(where=str(path), rule=rule, fix=_KNOWN))
    return imported_runs(runs, path, options, "JSON of nccl-tests")


def _read_log(path: Path, options: ImportOptions) -> Imported:
    return imported_runs(read_log(read_whole(path)), path, options, "log of nccl-tests")


def _read_table(path: Path, options: ImportOptions) -> Imported:
    return import_table(read_whole(path), path, options)


_KINDS = (
    _Kind(
        looks=lambda head: bool(_JSON.match(head) and _TRACE.search(head)),
        read=import_trace,
    ),
    _Kind(looks=lambda head: bool(_JSON.match(head)), read=_read_json),
    _Kind(looks=looks_like_table, read=_read_table),
    _Kind(looks=looks_like_log, read=_read_log),
)
