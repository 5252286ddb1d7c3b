"""`traincast calibrate`: measure a machine, fit a profile to it, check it, report it."""

from __future__ import annotations

import typer

from traincast.commands.calibrate_check import check_profile
from traincast.commands.calibrate_fit import fit_profile
from traincast.commands.calibrate_import import import_measurements
from traincast.commands.calibrate_launch import launch
from traincast.commands.calibrate_report import report_calibration
from traincast.commands.calibrate_run import run_measurements

calibrate = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure the real machine, fit a profile to it, check it and report it.",
)
for _name, _verb in (
    ("run", run_measurements),
    ("launch", launch),
    ("import", import_measurements),
    ("fit", fit_profile),
    ("check", check_profile),
    ("report", report_calibration),
):
    calibrate.command(_name)(_verb)
