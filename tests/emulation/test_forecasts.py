"""Calibrate with the tool on two hosts, then forecast what was not measured, and measure that."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from statistics import median

import pytest

from calibrate.check import Check
from tests.emulation.machines import (
    HERE,
    MEGABIT,
    Machine,
    checked,
    errors_of,
    measure,
    table_of,
    with_layers,
)

RATES = (200 * MEGABIT, 100 * MEGABIT)
STEPS = {2: 7, 4: 5}
"""By the number of hosts."""
STEP_MEDIAN, STEP_WORST = 0.04, 0.10
DISTURBANCE = 0.05
"""The machine is shared, and its cores vary by 10 to 20 % from minute to minute, also between the
times that are fitted and the steps that are checked. A job whose worst step is off by more than
`STEP_WORST` is run again, all runs are shown, and the last one may be off by this much more."""
ATTEMPTS = 2
COLLECTIVE_MEDIAN = 0.05

pytestmark = pytest.mark.alone


def show(capsys: pytest.CaptureFixture[str], title: str, *tables: str) -> None:
    """Print predicted against measured for whoever watches the tests."""
    with capsys.disabled():
        sys.stdout.write("\n".join((f"\n{title}", *tables)) + "\n")


def test_training_steps_take_as_long_as_forecast(
    two_hosts: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """DDP with three bucket sizes, FSDP2, DTensor, GPipe, 1F1B, hybrids; two rates, 2 and 4."""
    tables, errors = [], []
    for hosts, rate in product(STEPS, RATES):
        for attempt in range(ATTEMPTS):
            folder = tmp_path / f"{hosts}-{rate:.0f}-{attempt}"
            check = steps_of(hosts, rate, two_hosts, folder)
            tables.append(f"{hosts} hosts at {rate / MEGABIT:g} Mb/s\n{table_of(check)}")
            assert len(errors_of(check)) == STEPS[hosts]
            if max(errors_of(check)) <= STEP_WORST:
                break
        errors += errors_of(check)
    summary = f"median {median(errors):.1%}, worst {max(errors):.1%} of {len(errors)} steps"
    show(capsys, "Training steps, forecast over measured", *tables, summary)
    assert median(errors) <= STEP_MEDIAN, summary
    assert max(errors) <= STEP_WORST + DISTURBANCE, summary


def steps_of(hosts: int, rate: float, network: Machine, folder: Path) -> Check:
    """Return the steps of some hosts beside forecasts fitted to the same job's single ranks."""
    measured = folder / "measured"
    measure(HERE / f"steps-{hosts}-hosts.toml", measured, hosts=hosts, rate=rate)
    machine = with_layers(network, measured, folder)
    return checked(measured, machine.at(rate))


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
