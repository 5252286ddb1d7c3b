"""`traincast calibrate check`: measured points beside the forecasts of a profile."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Annotated

import typer

from simulator.errors import InfeasibleError, InputError, Problem
from traincast.commands.output import as_json, check_targets, console, progress_bar, write

_SHARE = re.compile(r"\s*([0-9.]+)\s*%\s*")
_PERCENT = 100


def check_profile(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Folder of measurements (*.jsonl).")],
    *,
    profile: Annotated[
        str, typer.Option(help="The profile to check: a shipped name or a .toml file.")
    ],
    median: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help='Fail where the median error is above this: "4%".'),
    ] = None,
    worst: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help='Fail where any error is above this: "10%".'),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="Kinds of points to check, such as step; else all."),
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="OUT", help="Write every point as JSON ('-': stdout).")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Forecast every measured point with a profile: errors a family, noise beside them.

    Points that the profile's fit has not seen are counted apart; the limits hold for those, or for
    all points where it has seen all, or where the profile does not list them.
    """
    tables = check_targets(folder, json=json)
    from calibrate.check import ErrorLimits, broken_limits, check_records
    from calibrate.check_table import check_table
    from calibrate.journal import read_folder
    from calibrate.records import Record
    from reports.calibration_sections import check_sections
    from reports.calibration_view import print_sections
    from simulator.hardware.profile import load_profile

    limits = ErrorLimits(median=_share("--median", median), worst=_share("--worst", worst))
    loaded = load_profile(profile)
    lines = read_folder(Path(folder)).lines
    records = [line for line in lines if isinstance(line, Record)]
    if only:
        records = [record for record in records if record.point.what in _kinds(only)]
    with progress_bar("forecasting points", quiet=quiet, counted=False):
        check = check_records(records, loaded, Path(folder))
    broken = broken_limits(check, limits)
    if json is not None:
        write(as_json(check_table(check, broken)), json)
    if tables:
        print_sections(console(), check_sections(check), "see --json")
    if broken:
        raise InfeasibleError(*(Problem(where=folder, rule=words) for words in broken))


def _share(option: str, text: str | None) -> float | None:
    """Return the fraction that a percentage says; None where it was not given."""
    if text is None:
        return None
    found = _SHARE.fullmatch(text)
    try:
        value = float(found[1]) / _PERCENT if found else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        problem = Problem(key=option, found=text, rule="must be a percentage", fix=f'{option} "4%"')
        raise InputError(problem)
    return value


def _kinds(only: list[str]) -> frozenset[str]:
    from calibrate.point_words import KINDS
    from simulator.files import nearest

    wrong = [kind for kind in only if kind not in KINDS]
    if wrong:
        rule = "is not a kind of point"
        fixes = [(kind, nearest(kind, list(KINDS))) for kind in wrong]
        raise InputError(
            *(Problem(key="--only", found=kind, rule=rule, fix=fix) for kind, fix in fixes)
        )
    return frozenset(only)
