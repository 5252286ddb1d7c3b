"""Calibrate with the tool on two hosts, then forecast what was not measured, and measure that."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

import pytest

from tests.emulation.machines import (
    HERE,
    MEGABIT,
    Machine,
    checked,
    errors_of,
    measure,
    table_of,
)

RATES = (200 * MEGABIT, 100 * MEGABIT)
STEP_MEDIAN, STEP_WORST = 0.04, 0.10
COLLECTIVE_MEDIAN = 0.05

pytestmark = pytest.mark.alone


def show(capsys: pytest.CaptureFixture[str], title: str, *tables: str) -> None:
    """Print predicted against measured for whoever watches the tests."""
    with capsys.disabled():
        sys.stdout.write("\n".join((f"\n{title}", *tables)) + "\n")


def test_training_steps_take_as_long_as_forecast(
    two_hosts: Machine, four_hosts: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DDP with three bucket sizes, FSDP2, DTensor, GPipe, 1F1B, hybrids; two rates, 2 and 4."""
    tables, errors = [], []
    for hosts, machine in ((2, two_hosts), (4, four_hosts)):
        for rate in RATES:
            folder = tmp_path / f"{hosts}-{rate:.0f}"
            measure(HERE / f"steps-{hosts}-hosts.toml", folder, hosts=hosts, rate=rate)
            check = checked(folder, machine.at(rate))
            tables.append(f"{hosts} hosts at {rate / MEGABIT:g} Mb/s\n{table_of(check)}")
            errors += errors_of(check)
    summary = f"median {median(errors):.1%}, worst {max(errors):.1%} of {len(errors)} steps"
    show(capsys, "Training steps, forecast over measured", *tables, summary)
    assert len(errors) == 2 * (7 + 5)
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
