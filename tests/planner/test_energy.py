"""Power by hand, on boards of 400 W and hosts of 3,000 W."""

from __future__ import annotations

import pytest

from planner.energy import PowerModel, load_power_model, node_power, step_energy
from simulator.files import parse_record
from simulator.results import Breakdown, Category
from tests.planner.scenarios import machine

MODEL = parse_record(
    PowerModel,
    {
        "name": "round",
        "title": "round",
        "idle_share": 0.1,
        "activity": {"matrix": 1.0, "memory": 0.5, "communication": 0.25, "waiting": 0.0},
        "host": {"share": 0.5},
        "source": [{"what": "all", "reference": "made up", "read_on": "2000-01-01"}],
    },
    "power",
)


def step(**seconds: float) -> Breakdown:
    """Return a step of the given seconds by category."""
    return Breakdown(stage=0, seconds={Category(name): value for name, value in seconds.items()})


@pytest.mark.parametrize(
    ("breakdown", "board"),
    [
        (step(gemm=2.0), 400.0),
        (step(bubble=2.0), 40.0),
        (step(gemm=1.0, bubble=1.0), 220.0),
        (step(attention=1.0, optimizer=1.0, data_comm=2.0), 40.0 + 360.0 * 2.0 / 4.0),
    ],
)
def test_a_board_draws_what_it_does_on_average(breakdown: Breakdown, board: float) -> None:
    assert node_power(machine(), breakdown, MODEL).training == pytest.approx(1500.0 + 8 * board)


def test_a_profile_that_says_its_idle_power_is_believed() -> None:
    profile = machine()
    board = profile.accelerator.model_copy(update={"idle_power": 100.0})
    told = profile.model_copy(
        update={"machine": profile.machine.model_copy(update={"accelerator": board})}
    )
    assert node_power(told, step(gemm=1.0), MODEL).idle == 1500.0 + 8 * 100.0


def test_the_energy_of_a_step_is_power_times_time() -> None:
    # Two nodes of 1,500 + 8 x 400 W for 3 s.
    assert step_energy(machine(), step(gemm=3.0), 16, MODEL) == pytest.approx(28_200.0)


def test_the_shipped_model_keeps_a_node_of_h100_below_its_rating() -> None:
    """Latif et al. 2025: 8.4 kW at most in training, of rated 10.2 kW."""
    from simulator.hardware.profile import load_profile

    power = node_power(load_profile("dgx-h100"), step(gemm=1.0), load_power_model())
    assert power.training == pytest.approx(8400.0, rel=0.005)
