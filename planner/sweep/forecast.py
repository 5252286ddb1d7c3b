"""The forecast of one combination: a row, whatever its scenario may come to."""

from __future__ import annotations

from importlib.metadata import version
from math import isfinite
from typing import Any

from planner.explain import bottleneck, run_totals
from planner.planning import plan
from planner.result import Plan, PlannedLayout, RunTotals
from planner.sweep.cases import Case
from planner.sweep.identity import check_place
from planner.sweep.row import Outcome, Row
from planner.sweep.sweep_file import Method
from planner.sweep.whole_run import with_whole_run
from planner.tables import layout_table
from planner.variants import varied_scenario
from simulator.api import Forecaster
from simulator.errors import InputError
from simulator.given_layout import scenario_layout
from simulator.hardware.parts import mean_price
from simulator.parallel.layout import ParallelLayout
from simulator.results import StepResult
from simulator.scenario import Scenario, machine_problems
from simulator.units import GIB

_RUN = (
    "steps",
    "days",
    "days_low",
    "days_high",
    "accelerator_hours",
    "cost",
    "currency",
)
_NOT_FINITE = "its numbers are so far out of proportion that the forecast is not finite"


def forecast_case(case: Case) -> tuple[int, Row]:
    """Return the number of a case and its row; the same case gives the same row anywhere.

    Raises:
        InputError: this process would forecast something else (`check_place`).
    """
    check_place(case.files, case.code, str(case))
    try:
        return case.number, _row(case)
    except InputError as error:
        return case.number, _refused(case.scenario, str(error))
    except OverflowError:
        return case.number, _refused(case.scenario, _NOT_FINITE)
    except Exception as error:
        error.add_note(f"while it was forecast: {case}")
        raise


def _row(case: Case) -> Row:
    scenario = case.scenario
    if problems := tuple(machine_problems(scenario)):
        raise InputError(*problems)
    if case.what is Method.PLAN:
        return _planned(scenario, plan(scenario))
    layout = scenario_layout(scenario)
    forecaster = Forecaster.of(scenario)
    forecaster.check(layout, scenario.where)
    simulated = case.what is Method.SIMULATE
    result = forecaster.simulate(layout, spans=False) if simulated else forecaster.estimate(layout)
    return _stepped(scenario, layout, result, simulated=simulated)


def _planned(scenario: Scenario, found: Plan) -> Row:
    """Return the row of a plan's first layout."""
    if not found.layouts:
        return _none_fits(scenario, found)
    best = found.layouts[0]
    varied = varied_scenario(scenario, best.varied)
    row = Row(
        outcome=Outcome.OK,
        memory_capacity_bytes=found.memory_capacity,
        warnings=found.warnings,
        **_numbers(best, found.run),
    )
    return _asked(varied, with_whole_run(row, varied, best.layout, best))


def _none_fits(scenario: Scenario, found: Plan) -> Row:
    searched = found.searched
    if not searched.legal:
        reason = f"none of {searched.considered:,} layouts is legal"
        examples = "\n".join(found.examples.values())
        return _refused(scenario, f"{reason}\n{examples}".strip())
    nearest = min(miss.peak_memory for miss in found.nearest)
    row = Row(
        outcome=Outcome.NO_FIT,
        reason=f"none of {searched.legal:,} legal layouts fits in {found.memory_limit / GIB:.2f} "
        f"GiB; the closest reserves {nearest / GIB:.2f} GiB",
        memory_capacity_bytes=found.memory_capacity,
        warnings=found.warnings,
    )
    return _asked(scenario, row)


def _stepped(
    scenario: Scenario, layout: ParallelLayout, result: StepResult, *, simulated: bool
) -> Row:
    """Return the row of a given layout."""
    entry = PlannedLayout(
        rank=1,
        layout=layout,
        simulated=simulated,
        step_time=result.step_time,
        low=result.low,
        high=result.high,
        estimate=result.step_time,
        tokens_per_second=result.tokens_per_second,
        mfu=result.mfu,
        peak_memory=result.peak_memory,
        breakdown=result.breakdown,
    )
    price = mean_price(scenario.parts)
    run = run_totals(entry, scenario.file.job, scenario.world_size, price)
    reason = _too_large(result)
    row = Row(
        outcome=Outcome.NO_FIT if reason else Outcome.OK,
        reason=reason,
        memory_capacity_bytes=result.memory_capacity,
        warnings=result.provenance.warnings,
        **_numbers(entry, run),
    )
    return _asked(scenario, with_whole_run(row, scenario, layout, result))


def _numbers(entry: PlannedLayout, run: RunTotals | None) -> dict[str, Any]:
    """Return the columns of a layout. Raises `OverflowError` where one is not finite."""
    found = {
        "method": "simulated" if entry.simulated else "estimated",
        "layout": str(entry.layout),
        "axes": layout_table(entry.layout),
        "step_time_s": entry.step_time,
        "low_s": entry.low,
        "high_s": entry.high,
        "tokens_per_s": entry.tokens_per_second,
        "tokens_per_s_per_accelerator": entry.tokens_per_second / entry.layout.world_size,
        "mfu": entry.mfu,
        "peak_memory_bytes": entry.peak_memory,
        "exposed_communication_s": entry.breakdown.exposed_communication,
        "bubble_s": entry.breakdown.bubble,
        "bottleneck": bottleneck(entry.breakdown),
    }
    if run is not None:
        found |= {name: getattr(run, name) for name in _RUN}
    numbers = [value for value in found.values() if isinstance(value, float)]
    if not all(map(isfinite, numbers)):
        raise OverflowError
    return found


def _asked(scenario: Scenario, row: Row) -> Row:
    """Return a row that says what was asked for."""
    job = scenario.file.job
    return row.model_copy(
        update={
            "model": scenario.model.spec.name,
            "profile": " + ".join(part.profile.name for part in scenario.parts),
            "stack": scenario.stack.name,
            "precision": job.precision.value,
            "accelerators": scenario.world_size,
            "global_batch_size": job.global_batch_size,
            "seq_length": job.seq_length,
            "traincast": version("traincast"),
            "profile_sha256": " + ".join(part.profile.sha256 for part in scenario.parts),
        }
    )


def _refused(scenario: Scenario, reason: str) -> Row:
    return _asked(scenario, Row(outcome=Outcome.REFUSED, reason=reason))


def _too_large(result: StepResult) -> str:
    """Return why a step would run out of memory; nothing where it would not."""
    over = [
        f"it reserves {used / GIB:.2f} GiB of {capacity / GIB:.2f} GiB of {what}"
        for used, capacity, what in (
            (result.peak_memory, result.memory_capacity, "an accelerator"),
            (result.host_memory, result.host_capacity, "an accelerator's host memory"),
        )
        if used > capacity
    ]
    return "; ".join(over)
