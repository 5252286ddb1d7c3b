"""Training steps in several bursts, each with the single ranks that they are forecast from.

A burst is a job of its own: new processes, new process groups, minutes after the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import tomlkit

from calibrate.check import Check, check_records
from calibrate.records import Record
from tests.emulation.machines import (
    HERE,
    RATES,
    Machine,
    is_joint_step,
    measure,
    records_of,
    with_layers,
)

MOST_BURSTS = 4
"""Times that a step is measured at most, each in a job of its own with new process groups, which
times single ranks too: what a rank computes in a second varies by 10 to 20 % from minute to minute
where others share the machine. Medians of all bursts count."""
ENOUGH = 3.0
"""Seconds of steps, all bursts together, that are an average by themselves."""
LONG = 1.8
"""Seconds of a step from which one burst is enough; of a shorter one two are the least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSteps:
    """Training steps at each of `RATES`, beside forecasts that are fitted to single ranks."""

    machine: Machine
    checks: tuple[Check, ...]
    """One a rate."""


def checked_steps(hosts: int, network: Machine, folder: Path) -> CheckedSteps:
    """Time single ranks and their joint steps in several bursts; see `MOST_BURSTS`."""
    plan = HERE / f"steps-{hosts}-hosts.toml"
    found: dict[float, list[list[Record]]] = {rate: [] for rate in RATES}
    ranks: list[Path] = []
    for burst in range(MOST_BURSTS):
        wanted = {rate: wanted_in(burst, steps) for rate, steps in found.items()}
        jobs = [rate for rate, numbers in wanted.items() if numbers is None or numbers]
        for rate in jobs:
            out, numbers = folder / f"burst-{burst}-{rate:.0f}", wanted[rate]
            whole = tomlkit.parse(plan.read_text()).unwrap()
            part = _part_of(whole, burst, numbers, alone=rate == jobs[0])
            path = out.with_suffix(".toml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(tomlkit.dumps(part))
            measure(path, out, hosts=hosts, rate=rate)
            _add(found[rate], numbers, out)
            if rate == jobs[0]:
                ranks.append(out)
    machine = with_layers(network, ranks, folder)
    steps = [
        check_records([together(times) for times in found[rate]], machine.at(rate), folder)
        for rate in RATES
    ]
    return CheckedSteps(machine=machine, checks=tuple(steps))


def wanted_in(burst: int, steps: Sequence[Sequence[Record]]) -> list[int] | None:
    """Return the numbers of the steps that a burst measures; None for all of the plan."""
    if burst == 0:
        return None
    return [number for number, times in enumerate(steps) if burst < _bursts_of(times[0])]


def _bursts_of(record: Record) -> int:
    """Return how many bursts a step needs, by its first one."""
    assert record.seconds is not None
    enough = ceil(ENOUGH / (record.samples * record.seconds))
    return min(MOST_BURSTS, max(enough, 1 if record.seconds > LONG else 2))


def together(times: Sequence[Record]) -> Record:
    """Return one record of the bursts of a step: their median, and the noise of it.

    The noise is the distance between the quartiles of the bursts, as else that between those of
    blocks; or what the blocks of a burst have by themselves, where that is more.
    """
    seconds = [record.seconds for record in times if record.seconds is not None]
    middle, noise = median(seconds), median(record.spread or 0.0 for record in times)
    if len(seconds) > 1:
        low, _, high = quantiles(seconds, n=4, method="inclusive")
        noise = max(noise, (high - low) / middle)
    samples = sum(record.samples for record in times)
    return times[0].model_copy(update={"seconds": middle, "spread": noise, "samples": samples})


def _part_of(
    whole: dict[str, Any], burst: int, numbers: Sequence[int] | None, *, alone: bool
) -> dict[str, Any]:
    """Return a plan with some of its steps, and with layers where single ranks run `alone`.

    The first two bursts time the layers of all steps, others those of the steps that they run.
    """
    model, sections = whole["model"], list(whole)
    if numbers is not None:
        steps = [whole["step"][number] for number in numbers]
        layouts = [step["layout"] for step in (whole["step"] if burst == 1 else steps)]
        for sizes, key in (("micro_batches", "micro_batch_size"), ("tp", "tp")):
            model = {**model, sizes: sorted({layout.get(key, 1) for layout in layouts})}
        layers = {key: value for key, value in whole["layers"].items() if key != "dp"}
        whole = {**whole, "step": steps, "layers": layers}
        sections.remove("memory_bound")
    if not alone:
        model, sections = {"default": model["default"]}, ["limits", "model", "step"]
    return {name: model if name == "model" else whole[name] for name in sections}


def _add(found: list[list[Record]], numbers: Sequence[int] | None, out: Path) -> None:
    """Add what a burst measured to each step, in the order of the plan."""
    steps = [record for record in records_of(out) if is_joint_step(record)]
    if numbers is None:
        found += [[step] for step in steps]
        return
    for number, step in zip(numbers, steps, strict=True):
        found[number].append(step)
