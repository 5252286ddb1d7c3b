"""From the runs of a benchmark log to calibration lines, with all that is odd in them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from calibrate.import_arithmetic import contradiction
from calibrate.import_flags import flagged
from calibrate.import_options import Imported, ImportOptions
from calibrate.import_records import Measured, header, records_of
from calibrate.import_samples import Facts, Run, Sample
from calibrate.import_settings import Setting, setting_of, world_of
from calibrate.points import CollectivePoint, Timing
from calibrate.records import Fingerprint, Header, Record, Status
from calibrate.validation.cells import Row, SkippedRowError
from calibrate.validation.machines import Machines
from simulator.errors import InputError, Problem
from simulator.units import GB

_CPU_TIME = "the log has CPU times (-C): how long calls take to launch, not to run"
_ONE_THREAD = (
    "one thread launches on all {gpus} GPUs in turn (-g {gpus}): small sizes are slower than with"
    " a process a GPU"
)
_MEAN_SLACK = 0.005
"""Relative; the mean that a log prints is of numbers before they were rounded."""


def imported_runs(runs: Sequence[Run], path: Path, options: ImportOptions, kind: str) -> Imported:
    """Return the lines of all runs; runs of the same machine and setting are joined.

    Raises:
        InputError: there are measurements, but something that all of them need is not said.
    """
    machines: dict[str, tuple[Fingerprint, list[Measured]]] = {}
    told: list[Problem] = []
    for run in [run for run in runs if run.samples] or runs[:1]:
        setting = setting_of(run, path.stem, options) if run.samples else None
        if isinstance(setting, tuple):
            told += setting
            continue
        fingerprint = _fingerprint(run.facts, setting, options)
        _, found = machines.setdefault(fingerprint.model_dump_json(), (fingerprint, []))
        if setting is not None:
            rate = options.line_rate or known_line_rate(fingerprint.accelerator)
            measured = list(_measured(run, setting, rate))
            found += measured
            told += [*_notes(run, setting), *_flag_notes(measured)]
    notes = _placed(path, runs, told)
    if not machines:
        raise InputError(*notes)
    lines: list[Header | Record] = []
    for fingerprint, found in machines.values():
        lines += [header(fingerprint, path.name), *records_of(found, path.name)]
    if not any(run.samples for run in runs):
        rule = "holds no measured row: only the machine is known from it"
        notes.append(Problem(where=str(path), rule=rule))
    return Imported(kind=kind, lines=tuple(lines), notes=tuple(notes))


def _placed(path: Path, runs: Sequence[Run], told: Sequence[Problem]) -> list[Problem]:
    """Return all that is told of a file; what several runs have in common is told once."""
    once: dict[tuple[str, str], Problem] = {}
    for problem in told:
        once.setdefault((problem.rule, problem.found), problem)
    lines = (Problem(key=f"line {n}", rule=rule) for run in runs for n, rule in run.notes)
    return [replace(problem, where=str(path)) for problem in (*once.values(), *lines)]


@cache
def known_line_rate(accelerator: str | None) -> float | None:
    """Return the rate of a shipped machine's scale-up links, bytes/s; None for an unknown one."""
    try:
        profile = Machines().named(Row({"gpu": accelerator or ""}), "gpu")
    except SkippedRowError:
        return None
    return float(profile.node.scale_up.bandwidth)


def _measured(run: Run, setting: Setting, line_rate: float | None) -> Iterator[Measured]:
    wrong = {s: contradiction(s, setting.collective, setting.ranks) for s in run.samples}
    if run.cpu_time:
        wrong = dict.fromkeys(run.samples, _CPU_TIME)
    sound = [sample for sample in run.samples if not wrong[sample]]
    wrong |= flagged(sound, setting.collective, setting.ranks, line_rate)
    for sample in run.samples:
        reason = wrong[sample]
        yield Measured(
            point=_point(sample, setting, run.facts),
            seconds=sample.time.value if sample.time.value > 0 else None,
            line=sample.line,
            status=Status.REJECTED if reason else Status.OK,
            reason=reason,
        )


def _point(sample: Sample, setting: Setting, facts: Facts) -> CollectivePoint:
    return CollectivePoint(
        collective=setting.collective,
        ranks=setting.ranks,
        nodes=setting.nodes,
        bytes=sample.bytes,
        dtype=sample.dtype or "float32",
        timing=Timing.ISOLATED if facts.isolated else Timing.DEVICE,
        group=setting.group,
        in_place=sample.in_place,
    )


def _fingerprint(facts: Facts, setting: Setting | None, options: ImportOptions) -> Fingerprint:
    names = sorted({device.name for device in facts.devices if device.name})
    world = world_of(facts.devices)
    if world is not None:
        size: int | None = world.ranks * world.groups
        nodes: int | None = world.hosts
    else:
        size, nodes = (setting.ranks, setting.nodes) if setting else (None, None)
    even = size is not None and nodes is not None and size % nodes == 0
    return Fingerprint(
        accelerator=options.accelerator or " + ".join(names) or facts.accelerator,
        accelerators_per_node=size // nodes if even and size and nodes else None,
        nodes=nodes,
        world_size=size,
        backend="nccl",
        library=facts.library,
        environment=dict(facts.environment),
    )


def _notes(run: Run, setting: Setting) -> Iterator[Problem]:
    place = f"line {run.samples[0].line}"
    if setting.derived:
        yield Problem(key=place, rule="derived: " + "; ".join(setting.derived))
    threads, gpus = run.facts.threads or 1, run.facts.gpus or 1
    if threads == 1 and 1 < gpus <= setting.ranks:
        yield Problem(key=place, rule=_ONE_THREAD.format(gpus=gpus))
    if len({device.name for device in run.facts.devices}) > 1:
        yield Problem(key=place, rule="the ranks have accelerators of different kinds")
    if setting.ranks % setting.nodes:
        rule = f"{setting.ranks} ranks do not spread evenly over {setting.nodes} nodes"
        yield Problem(key=place, rule=rule)
    if run.average is not None and run.busbws:
        yield from _mean_note(run, place)


def _mean_note(run: Run, place: str) -> Iterator[Problem]:
    """Yield a note where the log's own mean is not that of its rows."""
    average = run.average
    mean = math.fsum(run.busbws) / len(run.busbws)
    if (
        average is None
        or abs(average.value - mean) <= average.slack + _MEAN_SLACK * mean + GB / 100
    ):
        return
    said, found = average.value / GB, mean / GB
    rule = f"the log's average bus bandwidth is {said:.4g} GB/s, that of its rows {found:.4g} GB/s"
    yield Problem(key=place, rule=f"{rule}: rows are missing or changed")


def _flag_notes(measured: Sequence[Measured]) -> Iterator[Problem]:
    """Yield one note for all points of a run that are not believed, with the first reason."""
    rejected = [each for each in measured if each.status is Status.REJECTED]
    if rejected:
        first = rejected[0]
        rule = f"{len(rejected)} of {len(measured)} points are rejected"
        yield Problem(key=f"line {first.line}", rule=rule, found=first.reason)
