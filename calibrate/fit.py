"""The fit: a folder of measurements becomes the profile of the machine that was measured.

Pure: it needs neither a GPU nor torch. Constants start from a base profile and stay where nothing
was measured; a block whose fit is worse than the base on points left out keeps the base's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from calibrate.fit_apart import with_apart
from calibrate.fit_base import SUFFIX, base_profile
from calibrate.fit_blocks import Block, fit_blocks, summary_of
from calibrate.fit_input import Measurements, Rejected, read_measurements
from calibrate.fit_provenance import fit_records, profile_spread, source_of
from calibrate.fit_software import measured_software, scaled_to_steps, slowdown_notes
from calibrate.profile_text import profile_text
from simulator.errors import InputError, Problem
from simulator.hardware.profile import INLINE, Profile, Source, parse_profile


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """The check on the random fifth of the points that the fit did not use."""

    points: int
    median: float
    """Of |predicted / measured - 1|."""
    p90: float
    default_median: float
    """Of the base's constants on the same points."""
    default_p90: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """What a fit found."""

    profile: Profile
    profile_text: str
    """The file to write."""
    base: str
    """Name of the profile that it started from."""
    blocks: tuple[Block, ...]
    rejected: tuple[Rejected, ...]
    notes: tuple[str, ...]
    check: HeldOut | None
    """None where there were too few points to hold any out."""


def fit_folder(
    folder: Path,
    *,
    base: str | None = None,
    name: str | None = None,
    accept_software_differences: bool = False,
    seed: int = 0,
) -> Fitted:
    """Return the profile fitted to all measurements (`*.jsonl`) of a folder.

    `base` is a shipped profile or a file; without it the shipped one of the measured accelerator.
    `seed` draws the fifth of the points that is held out for the check.

    Raises:
        InputError: nothing that can be read or fitted, a mixture of machines, of software where
            that is not accepted, or an accelerator that no shipped profile has.
    """
    measured = read_measurements(folder, accept_software_differences=accept_software_differences)
    if not measured.usable:
        raise InputError(_nothing(folder, measured))
    start, notes = base_profile(base, measured.fingerprint, measured.usable)
    fitted = fit_blocks(measured.usable, start, seed=seed)
    constants = fitted.profile.constants.model_copy(
        update={
            "software": measured_software(measured.usable, start),
            "spread": profile_spread(fitted, start),
            "fit": fit_records(fitted, start, measured),
        }
    )
    profile = fitted.profile.model_copy(update={"constants": constants})
    profile = with_apart(measured.usable, profile)
    profile = _named(scaled_to_steps(measured.usable, profile), name, measured)
    return Fitted(
        profile=profile,
        profile_text=profile_text(profile),
        base=start.name,
        blocks=fitted.blocks,
        rejected=(*measured.rejected, *fitted.rejected),
        notes=(*measured.notes, *notes, *slowdown_notes(measured.usable)),
        check=_check(fitted.blocks),
    )


def _named(profile: Profile, name: str | None, measured: Measurements) -> Profile:
    """Return the profile under its own name, checked, with the measurements among its sources.

    Raises:
        InputError: `name` is not one that a profile can have.
    """
    machine = profile.machine
    day = date.fromisoformat(measured.dates[-1]) if measured.dates else date.today()
    own = Source(what="constants", reference=source_of(measured), read_on=day)
    changed = machine.model_copy(
        update={
            "name": name or f"{machine.name}{SUFFIX}",
            "title": f"{machine.title}, calibrated",
            "aliases": (),
            "constants": INLINE,
            "source": (*machine.source, own),
        }
    )
    named = profile.model_copy(update={"machine": changed})
    return parse_profile(profile_text(named), "--name")


def _check(blocks: tuple[Block, ...]) -> HeldOut | None:
    empty = [np.zeros(0)]
    own = summary_of(np.concatenate([*(block.held_out for block in blocks), *empty]))
    base = summary_of(np.concatenate([*(block.default_held_out for block in blocks), *empty]))
    if own is None or base is None:
        return None
    return HeldOut(
        points=sum(block.held_out.size for block in blocks),
        median=own[0],
        p90=own[1],
        default_median=base[0],
        default_p90=base[1],
    )


def _nothing(folder: Path, measured: Measurements) -> Problem:
    found = f"{len(measured.rejected)} that failed or were rejected"
    first = f"; the first: {measured.rejected[0]}" if measured.rejected else ""
    return Problem(
        where=str(folder),
        rule="needs at least one measurement that is fine",
        found=found + first,
        fix="traincast calibrate run --out DIR measures; traincast calibrate import reads logs",
    )
