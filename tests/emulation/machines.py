"""Profiles of the emulated cluster, fitted by the command line to what the tool measured."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tomlkit

from calibrate.check import Check, check_records
from calibrate.journal import read_journal
from calibrate.points import StepPoint
from calibrate.records import Line, Record, Status
from simulator.hardware.profile import Profile, load_profile
from tests.emulation.cluster import cluster
from tests.emulation.ranks import calibrate_run
from traincast.cli import main

HERE = Path(__file__).parent
MEGABIT = 1e6
CALIBRATED_AT = 200 * MEGABIT
"""Bits/s of the links while calibrating; other rates are forecast."""
RATES = (CALIBRATED_AT, 100 * MEGABIT)
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
    """Return the profile of two hosts whose network is calibrated, at `CALIBRATED_AT`."""
    measured = folder / "measured"
    measure(HERE / "calibration.toml", measured, hosts=2, rate=CALIBRATED_AT)
    return _fitted(folder, measured)


def with_layers(network: Machine, bursts: Sequence[Path], folder: Path) -> Machine:
    """Return the profile of a calibrated network and of what single ranks took in other jobs.

    Steps of those jobs that several ranks make together are for checks: the fit does not see them.
    """
    fitted = folder / "fitted"
    fitted.mkdir(parents=True)
    shutil.copy(network.folder / "measured.jsonl", fitted / "network.jsonl")
    for number, measured in enumerate(bursts):
        lines = read_journal(measured / "measured.jsonl").lines
        kept = [line.model_dump_json() + "\n" for line in lines if not is_joint_step(line)]
        (fitted / f"ranks-{number}.jsonl").write_text("".join(kept))
    return _fitted(folder, fitted)


def is_joint_step(line: Line) -> bool:
    """Return whether a line is of a training step that several ranks made together."""
    if not isinstance(line, Record) or not isinstance(line.point, StepPoint):
        return False
    return line.point.layout.world_size > 1


def measure(plan: Path, out: Path, *, hosts: int, rate: float, computes: bool = True) -> None:
    """Measure a plan on a fresh cluster of one tier."""
    with cluster(hosts, rate) as made:
        calibrate_run(made, plan, out, ranks=hosts, limit=_LONGEST, computes=computes)


def checked(folder: Path, profile: Profile) -> Check:
    """Return the collectives that were measured in a folder beside forecasts."""
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
