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
STEP_WORST = 0.20
ATTEMPTS = 2
"""The machine is shared, and its cores vary by 10 to 20 % from minute to minute, also between the
times that are fitted and the steps that are checked. Single ranks and steps are all measured again
where a step is off by more than `STEP_WORST`, once. The last measurement counts, and all are
printed."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSteps:
    """Training steps at each of `RATES`, beside forecasts that are fitted to single ranks."""

    machine: Machine
    checks: tuple[tuple[Check, ...], ...]
    """Of each time that they were run, one a rate; the last time counts."""


def checked_steps(hosts: int, network: Machine, folder: Path) -> CheckedSteps:
    """Time single ranks, then their joint steps; all again where a step is too far off."""
    attempts: list[tuple[Check, ...]] = []
    while not attempts or _is_to_be_repeated(attempts):
        out = folder / str(len(attempts))
        machine, checks = _steps_at_all_rates(hosts, network, out)
        attempts.append(checks)
    return CheckedSteps(machine=machine, checks=tuple(attempts))


def _is_to_be_repeated(attempts: Sequence[Sequence[Check]]) -> bool:
    """Return whether a step is too far off, and there is a measurement left."""
    far = max(error for check in attempts[-1] for error in errors_of(check)) > STEP_WORST
    return far and len(attempts) < ATTEMPTS


def _steps_at_all_rates(
    hosts: int, network: Machine, folder: Path
) -> tuple[Machine, tuple[Check, ...]]:
    """Return the profile of single ranks, and the steps at each rate beside its forecasts."""
    plan = HERE / f"steps-{hosts}-hosts.toml"
    first, *others = RATES
    measured = folder / "measured"
    measure(plan, measured, hosts=hosts, rate=first)
    machine = with_layers(network, measured, folder)
    checks = [checked(measured, machine.at(first))]
    for rate in others:
        again = folder / f"{rate:.0f}"
        measure(_steps_alone(plan, folder), again, hosts=hosts, rate=rate)
        checks.append(checked(again, machine.at(rate)))
    return machine, tuple(checks)


def _steps_alone(plan: Path, folder: Path) -> Path:
    """Return a plan with the same steps and nothing else: a rank's own times know no rate."""
    whole = tomlkit.parse(plan.read_text()).unwrap()
    whole["model"] = {"default": whole["model"]["default"]}
    path = folder / "steps.toml"
    path.write_text(tomlkit.dumps({key: whole[key] for key in ("limits", "model", "step")}))
    return path


def with_layers(network: Machine, measured: Path, folder: Path) -> Machine:
    """Return the profile of a calibrated network and of what single ranks took in another job.

    Steps of that job that several ranks make together are for checks: the fit does not see them.
    """
    fitted = folder / "fitted"
    fitted.mkdir(parents=True)
    shutil.copy(network.folder / "measured.jsonl", fitted / "network.jsonl")
    lines = read_journal(measured / "measured.jsonl").lines
    kept = [line.model_dump_json() + "\n" for line in lines if not _is_joint_step(line)]
    (fitted / "ranks.jsonl").write_text("".join(kept))
    return _fitted(folder, fitted)


def _is_joint_step(line: Line) -> bool:
    if not isinstance(line, Record) or not isinstance(line.point, StepPoint):
        return False
    return line.point.layout.world_size > 1


def measure(plan: Path, out: Path, *, hosts: int, rate: float, computes: bool = True) -> None:
    """Measure a plan on a fresh cluster of one tier."""
    with cluster(hosts, rate) as made:
        calibrate_run(made, plan, out, ranks=hosts, limit=_LONGEST, computes=computes)


def checked(folder: Path, profile: Profile) -> Check:
    """Return the collectives or joint steps that were measured in a folder beside forecasts."""
    records = records_of(folder)
    steps = [record for record in records if _is_joint_step(record)]
    return check_records(steps or records, profile, folder)


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
