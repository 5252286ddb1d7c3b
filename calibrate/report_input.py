"""What a report is made of: a folder, a profile (or one that is fitted for it), the shipped one."""

from __future__ import annotations

from pathlib import Path

from calibrate.fit_base import base_profile
from calibrate.fit_input import read_measurements
from calibrate.journal import read_folder
from calibrate.records import Header, Record
from calibrate.summary import Summary, summarise
from simulator.errors import InputError
from simulator.hardware.profile import Profile, load_profile


def summarise_folder(folder: Path, *, profile: str | None, base: str | None) -> Summary:
    """Return the summary of a folder with a profile, which is fitted to it where none is named.

    Raises:
        InputError: the folder or a profile cannot be read; or no profile is named and none can be
            fitted, as nothing was measured well or the files are of different machines.
    """
    read = read_folder(folder)
    chosen = _fitted(folder, base) if profile is None else load_profile(profile)
    shipped, notes = _shipped(folder, base)
    return summarise(
        [line for line in read.lines if isinstance(line, Header)],
        [line for line in read.lines if isinstance(line, Record)],
        chosen,
        shipped,
        folder=folder,
        notes=(*read.notes, *notes),
    )


def _fitted(folder: Path, base: str | None) -> Profile:
    from calibrate.fit import fit_folder

    return fit_folder(folder, base=base, accept_software_differences=True).profile


def _shipped(folder: Path, base: str | None) -> tuple[Profile | None, tuple[str, ...]]:
    """Return the shipped profile to compare with, with notes; None where none is found."""
    if base is not None:
        return load_profile(base), ()
    try:
        measured = read_measurements(folder, accept_software_differences=True)
        return base_profile(None, measured.fingerprint, measured.usable)
    except InputError as error:
        return None, (f"no shipped profile stands beside it: {error.problems[0].rule}",)
