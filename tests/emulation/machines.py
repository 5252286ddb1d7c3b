"""Profiles of the emulated cluster, fitted by the command line to what the tool measured."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from calibrate.check import Check, check_records
from calibrate.journal import read_journal
from calibrate.records import Record, Status
from simulator.hardware.profile import Profile, load_profile
from tests.emulation.cluster import cluster
from tests.emulation.ranks import calibrate_run
from traincast.cli import main

HERE = Path(__file__).parent
MEGABIT = 1e6
CALIBRATED_AT = 200 * MEGABIT
"""Bits/s of the links while calibrating; other rates are forecast."""
_BASE = HERE / "emulated-cpu.toml"
_LONGEST = 400.0
"""Seconds after which a run that should take one to two minutes has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A fitted profile and the folder of measurements that fitted it."""

    folder: Path
    profile: Path

    def at(self, rate: float) -> Profile:
        """Return the profile with links of `rate` bits/s: a number that anyone reads off a NIC."""
        text = tomlkit.parse(self.profile.read_text())
        nic = text["node"]["nic"]  # type: ignore[index]
        nic["bandwidth"] = f"{rate:.0f} bps"  # type: ignore[index]
        changed = self.profile.with_name(f"at-{rate:.0f}.toml")
        changed.write_text(tomlkit.dumps(text))
        return load_profile(str(changed))


def calibrated(folder: Path) -> Machine:
    """Return the profile of two hosts, calibrated over links of `CALIBRATED_AT`."""
    measured = folder / "measured"
    measure(HERE / "calibration.toml", measured, hosts=2, rate=CALIBRATED_AT)
    return _fitted(folder, measured)


def calibrated_for_four(folder: Path, two: Machine) -> Machine:
    """Return the same with layers timed by four hosts at once, which share the cores here."""
    measured = folder / "measured"
    measure(HERE / "layers-4-hosts.toml", measured, hosts=4, rate=CALIBRATED_AT)
    shutil.copy(two.folder / "measured.jsonl", measured / "two-hosts.jsonl")
    return _fitted(folder, measured)


def measure(plan: Path, out: Path, *, hosts: int, rate: float, computes: bool = True) -> None:
    """Measure a plan on a fresh cluster of one tier."""
    with cluster(hosts, rate) as made:
        calibrate_run(made, plan, out, ranks=hosts, limit=_LONGEST, computes=computes)


def checked(folder: Path, profile: Profile) -> Check:
    """Return what was measured in a folder beside its forecasts."""
    return check_records(records_of(folder), profile, folder)


def records_of(folder: Path) -> list[Record]:
    """Return all that was measured in a folder; noisy points count too, as if they were not.

    A forecast is no better for leaving them out.
    """
    lines = read_journal(folder / "measured.jsonl").lines
    records = [line for line in lines if isinstance(line, Record) and line.seconds is not None]
    return [record.model_copy(update={"status": Status.OK}) for record in records]


def table_of(check: Check) -> str:
    """Return one line a point: signed error, the noise floor beside it, and what it is."""
    lines = []
    for point in check.points:
        if point.pair is None:
            lines.append(f"   -      -    {point.words}: {point.reason}")
            continue
        error = point.pair.predicted / point.pair.measured - 1
        noise = point.record.spread or 0.0
        seconds = f"{point.pair.measured * 1e3:8.1f} ms"
        lines.append(f"{error:+7.1%}  noise {noise:5.1%}  {seconds}  {point.words}")
    return "\n".join(lines)


def errors_of(check: Check) -> list[float]:
    """Return |predicted / measured - 1| of every compared point."""
    pairs = [point.pair for point in check.points if point.pair is not None]
    return [abs(pair.predicted / pair.measured - 1) for pair in pairs]


def _fitted(folder: Path, measured: Path) -> Machine:
    profile = folder / "profile.toml"
    arguments = ["calibrate", "fit", str(measured), "--base", str(_BASE), "--out", str(profile)]
    assert main(arguments) == 0
    return Machine(folder=measured, profile=profile)
