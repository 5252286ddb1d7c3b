"""The whole run of a combination, with failures and checkpoints, as columns of its row."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import Any

from planner.goodput import ForecastStep, run_plan
from planner.goodput.replicate import Quantiles
from planner.sweep.row import Row
from simulator.errors import InfeasibleError
from simulator.parallel.layout import ParallelLayout
from simulator.scenario import Scenario
from simulator.units import JOULES_PER_KWH


def with_whole_run(row: Row, scenario: Scenario, layout: ParallelLayout, step: ForecastStep) -> Row:
    """Return a row with its whole run, where the scenario has a `[run]` table and the step fits.

    A run in which failures come so fast that nothing is trained has no numbers, and `reason` says
    so.

    Raises:
        InputError: the run table lacks something, contradicts itself or asks for too much.
        OverflowError: a number is not finite.
    """
    if scenario.file.run is None or not row.runs:
        return row
    try:
        run = run_plan(scenario, layout, step)
    except InfeasibleError as error:
        return row.model_copy(update={"reason": str(error)})
    energy = run.energy.site or run.energy.machines
    found = {
        **_three("run_days", run.days),
        "run_goodput": run.goodput.p50,
        "run_accelerator_hours": run.accelerator_hours.p50,
        "run_cost": None if run.cost is None else run.cost.p50,
        "run_energy_kwh": energy.p50 / JOULES_PER_KWH,
        "run_co2_kg": None if run.energy.co2 is None else run.energy.co2.p50,
    }
    if not all(isfinite(value) for value in found.values() if value is not None):
        raise OverflowError
    warnings = dict.fromkeys((*row.warnings, *run.warnings))
    return row.model_copy(update={**found, "warnings": tuple(warnings)})


def _three(name: str, quantity: Quantiles) -> dict[str, Any]:
    return {f"{name}_{quantile}": value for quantile, value in asdict(quantity).items()}
