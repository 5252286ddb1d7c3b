"""Calibrate with the tool on two hosts, then forecast what was not measured, and measure that."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import pytest

from tests.emulation.bursts import CheckedSteps, checked_steps
from tests.emulation.machines import (
    HERE,
    MEGABIT,
    RATES,
    Machine,
    checked,
    errors_of,
    measure,
    table_of,
)

STEPS = 7 + 5
"""On two hosts and on four."""
STEP_MEDIAN, STEP_WORST = 0.04, 0.10
COLLECTIVE_MEDIAN = 0.05

pytestmark = pytest.mark.alone


def show(capsys: pytest.CaptureFixture[str], title: str, *tables: str) -> None:
    """Print predicted against measured for whoever watches the tests."""
    with capsys.disabled():
        sys.stdout.write("\n".join((f"\n{title}", *tables)) + "\n")


def _worst(job: CheckedSteps) -> float:
    return max(error for check in job.checks for error in errors_of(check))


def test_training_steps_take_as_long_as_forecast(
    two_hosts: Machine,
    four_hosts: CheckedSteps,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """DDP with three bucket sizes, FSDP2, DTensor, GPipe, 1F1B, hybrids; two rates, 2 and 4."""
    jobs = {2: checked_steps(2, two_hosts, tmp_path), 4: four_hosts}
    tables, errors = [], []
    for hosts, first in jobs.items():
        job = first
        if _worst(first) > STEP_WORST:
            tables += [f"{hosts} hosts, measured again\n{table_of(c)}" for c in first.checks]
            job = checked_steps(hosts, two_hosts, tmp_path / f"again-{hosts}")
        for rate, check in zip(RATES, job.checks, strict=True):
            tables.append(f"{hosts} hosts at {rate / MEGABIT:g} Mb/s\n{table_of(check)}")
            errors += errors_of(check)
    summary = f"median {median(errors):.1%}, worst {max(errors):.1%} of {len(errors)} steps"
    show(capsys, "Training steps, forecast over measured", *tables, summary)
    assert len(errors) == len(RATES) * STEPS
    assert median(errors) <= STEP_MEDIAN, summary
    assert max(errors) <= STEP_WORST, summary


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
