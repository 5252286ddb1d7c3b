"""Calibrate with the tool on two hosts, then forecast what was not measured, and measure that."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from statistics import median

import pytest

from tests.emulation.machines import (
    CALIBRATED_AT,
    HERE,
    MEGABIT,
    STEP_WORST,
    CheckedSteps,
    Machine,
    checked,
    checked_steps,
    errors_of,
    measure,
    table_of,
)

RATES = (CALIBRATED_AT, 100 * MEGABIT)
STEPS = {2: 7, 4: 5}
"""By the number of hosts."""
STEP_MEDIAN = 0.04
DISTURBANCE = 0.05
"""What the worst step of a job that was run again may be off beyond `STEP_WORST`."""
COLLECTIVE_MEDIAN = 0.05

pytestmark = pytest.mark.alone


def show(capsys: pytest.CaptureFixture[str], title: str, *tables: str) -> None:
    """Print predicted against measured for whoever watches the tests."""
    with capsys.disabled():
        sys.stdout.write("\n".join((f"\n{title}", *tables)) + "\n")


def test_training_steps_take_as_long_as_forecast(
    two_hosts: Machine,
    four_hosts: CheckedSteps,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """DDP with three bucket sizes, FSDP2, DTensor, GPipe, 1F1B, hybrids; two rates, 2 and 4."""
    jobs = {(4, CALIBRATED_AT): four_hosts}
    tables, errors = [], []
    for hosts, rate in product(STEPS, RATES):
        job = jobs.get((hosts, rate)) or checked_steps(
            hosts, rate, two_hosts, tmp_path / f"{hosts}-{rate:.0f}"
        )
        tables += [
            f"{hosts} hosts at {rate / MEGABIT:g} Mb/s\n{table_of(check)}" for check in job.checks
        ]
        errors += errors_of(job.checks[-1])
    summary = f"median {median(errors):.1%}, worst {max(errors):.1%} of {len(errors)} steps"
    show(capsys, "Training steps, forecast over measured", *tables, summary)
    assert len(errors) == len(RATES) * sum(STEPS.values())
    assert median(errors) <= STEP_MEDIAN, summary
    assert max(errors) <= STEP_WORST + DISTURBANCE, summary


def test_collectives_of_other_sizes_ranks_and_rates_take_as_long_as_forecast(
    two_hosts: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables, errors = [], []
    for hosts, rate in ((4, RATES[0]), (2, RATES[1])):
        folder = tmp_path / f"{hosts}-{rate:.0f}"
        measure(HERE / "collectives.toml", folder, hosts=hosts, rate=rate, computes=False)
        check = checked(folder, two_hosts.at(rate))
        tables.append(f"{hosts} hosts at {rate / MEGABIT:g} Mb/s\n{table_of(check)}")
        errors += errors_of(check)
    summary = f"median {median(errors):.1%}, worst {max(errors):.1%} of {len(errors)} collectives"
    show(capsys, "Collectives, forecast over measured", *tables, summary)
    assert len(errors) == 2 * 6 * 3
    assert median(errors) <= COLLECTIVE_MEDIAN, summary
