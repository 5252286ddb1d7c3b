"""What the verbs compute: one step of a scenario's layout, a plan, a validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.errors import InfeasibleError, InputError, Problem
from simulator.given_layout import scenario_layout
from simulator.hardware.parts import mean_price
from simulator.hardware.parts_checks import uniform_problem
from simulator.parallel.layout import ParallelLayout
from simulator.results import Span, StepResult
from simulator.scenario import Scenario, load_scenario

if TYPE_CHECKING:
    from calibrate.validation import Validation
    from planner import Plan
    from planner.explaining import Explanation
    from planner.goodput import RunPlan
    from planner.placement_score import Goal
    from planner.placing import Placing
    from simulator.api import Forecaster
    from simulator.cost.machine import Machine
    from simulator.interchange.export import StepTrace

_DETAILED_MICRO_BATCHES = 2
"""Micro-batches whose passes are traced operator by operator."""
_TRACED_AXES = {"tp", "cp", "dp", "pp", "ep", "etp", "shard_size"}
"""What a trace says of its layout: which ranks make groups."""


def estimate_step(
    scenario: Scenario | Path | str, layout: ParallelLayout | None = None
) -> StepResult:
    """Return the closed-form forecast of one step; `layout` is by default the scenario's.

    >>> round(estimate_step("examples/llama3.1-8b-dgx-h100.toml").breakdown.bubble, 3)
    0.0

    Raises:
        InputError: the scenario or the layout breaks a rule; all of them are listed.
    """
    loaded = read_scenario(scenario)
    forecaster, chosen = _prepare(loaded, layout)
    with _overflow_refused(loaded.where):
        return _finite(forecaster.estimate(chosen), loaded)


def simulate_step(
    scenario: Scenario | Path | str, layout: ParallelLayout | None = None
) -> StepResult:
    """Return the event-simulated forecast of one step, with its spans.

    It differs from `estimate_step` only where transfers share a link or ranks differ; then it says
    which links and ranks make the step longer.

    Raises:
        InputError: the scenario or the layout breaks a rule; all of them are listed.
    """
    from simulator.diagnosis import find_causes

    loaded = read_scenario(scenario)
    forecaster, chosen = _prepare(loaded, layout)
    with _overflow_refused(loaded.where):
        result = forecaster.simulate(chosen)
        causes = find_causes(forecaster, chosen, result)
        return _finite(replace(result, causes=causes), loaded)


def step_file(scenario: Scenario | Path | str, result: StepResult) -> dict[str, Any]:
    """Return a simulated step of the scenario's layout as a result file holds it, for reports."""
    from reports.records import step_record
    from reports.step_detail import detail_record, picture_record
    from simulator.detail import memory_curves, operators_of
    from simulator.stage_totals import stage_totals
    from traincast.network_figure import network_pictures

    loaded = read_scenario(scenario)
    forecaster, layout = _prepare(loaded, None)
    stage = result.breakdown.stage
    detail = detail_record(
        forecaster.machine_of(layout, stage).profile,
        result,
        operators_of(forecaster, layout, stage),
        memory_curves(forecaster, layout, result),
        stage_totals(forecaster, layout, result),
    )
    record = step_record(loaded, layout, result)
    pictures = [picture_record(each) for each in network_pictures(loaded, result)]
    return {**record, "network": {**record["network"], "pictures": pictures}, **detail}


def trace_step(scenario: Scenario | Path | str, result: StepResult) -> dict[str, Any]:
    """Return the simulated step of the scenario's layout as a Chrome trace (JSON).

    The passes of the first micro-batches are shown with the operators and collectives in them.
    """
    from reports.trace import TraceDetail, step_trace
    from simulator.cost.timeline import operator_spans
    from simulator.detail import memory_curves
    from simulator.schedule.graph import build_graph
    from simulator.schedule.shape import graph_shape
    from simulator.stage_totals import stage_totals
    from simulator.step_flows import flows_inside, step_flows

    loaded = read_scenario(scenario)
    forecaster, layout = _prepare(loaded, None)
    by_machine: dict[Machine, list[Span]] = {}
    for span in result.spans:
        by_machine.setdefault(forecaster.machine_of(layout, span.stage), []).append(span)
    inside = [
        piece
        for machine, spans in by_machine.items()
        for piece in operator_spans(
            machine.costs, machine.programs.of(layout), spans, _DETAILED_MICRO_BATCHES
        )
    ]
    graph = build_graph(graph_shape(forecaster.program(layout), averages=True))
    detail = TraceDetail(
        operators=inside,
        flows=(*step_flows(graph, result.spans), *flows_inside(result.spans, inside)),
        memory=memory_curves(forecaster, layout, result),
        totals=stage_totals(forecaster, layout, result),
        layout=layout.model_dump(mode="json", include=_TRACED_AXES),
    )
    return step_trace(result, loaded.title, detail)


def trace_ranks(scenario: Scenario | Path | str, *, ranks_limit: int | None = None) -> StepTrace:
    """Return what every rank does in a step of the scenario's layout, for other simulators.

    Raises:
        InputError: the layout is illegal, or has more ranks than `ranks_limit`.
        UnsupportedError: its schedule cannot be written so (dualpipe).
    """
    from simulator.interchange.export import RANKS_LIMIT, trace_step
    from simulator.schedule.graph import build_graph
    from simulator.schedule.shape import graph_shape

    loaded = read_scenario(scenario)
    if loaded.mixed:
        raise InputError(uniform_problem(loaded.parts, loaded.where, "cluster.part", "an export"))
    forecaster, layout = _prepare(loaded, None)
    program = forecaster.program(layout)
    graph = build_graph(graph_shape(program, averages=True))
    prices = forecaster.costs.durations(program, graph.works)
    return trace_step(
        program,
        graph,
        forecaster.costs,
        prices,
        ranks_limit=RANKS_LIMIT if ranks_limit is None else ranks_limit,
        where=loaded.where,
    )


def schedule_csv(scenario: Scenario | Path | str) -> str:
    """Return the pipeline schedule of the scenario's layout as CSV in PyTorch's notation.

    Raises:
        InputError: the layout is illegal, or its schedule cannot be written so (dualpipe).
    """
    from simulator.parallel.placement import Placement
    from simulator.schedule.csv_file import to_csv
    from simulator.schedule.registry import build_schedule, schedule_options

    loaded = read_scenario(scenario)
    forecaster, layout = _prepare(loaded, None)
    name, options = layout.effective_schedule, schedule_options(layout)
    if layout.pipeline.placement is Placement.BIDIRECTIONAL:
        problem = Problem(
            where=loaded.where,
            key="layout.schedule",
            found=name,
            rule="PyTorch's notation has one place for each part of the model, dualpipe two",
            fix="dualpipe-v",
        )
        raise InputError(problem)
    micro_batches = layout.micro_batches(forecaster.job.global_batch_size)
    schedule = build_schedule(name, layout.pp, layout.vpp, micro_batches, options)
    return to_csv(schedule, layout.pipeline)


def plan(
    scenario: Scenario | Path | str,
    *,
    progress: Callable[[int, int], None] | None = None,
    mapped: bool = False,
) -> Plan:
    """Return the fastest layouts of a scenario that fit, and why the others were refused.

    Where nothing fits, `layouts` is empty and `nearest` says what comes closest. `progress` is told
    how many layouts are settled, of how many. If `mapped`, `cells` has the best layout of each tp
    and pp.

    Raises:
        InputError: the scenario breaks a rule.
    """
    import planner

    loaded = read_scenario(scenario)
    with _overflow_refused(loaded.where):
        found = planner.plan(loaded, progress=progress, mapped=mapped)
    numbers = [n for each in found.layouts for n in (each.high, each.mfu, each.peak_memory)]
    numbers += [n for each in found.layouts for n in each.breakdown.seconds.values()]
    numbers += [n for each in found.layouts for n in (each.cost or 0.0, each.energy)]
    numbers += [miss.peak_memory for miss in found.nearest]
    run = found.run
    numbers += [run.cost or 0.0, run.days_high, run.accelerator_hours] if run else []
    _refuse_overflow(numbers, loaded.where)
    return found


def plan_run(scenario: Scenario | Path | str) -> tuple[ParallelLayout, StepResult, RunPlan]:
    """Return the plan of a scenario's whole run: its layout, the simulated step, and the run.

    Without a layout of its own it is the fastest that `plan` finds.

    Raises:
        InputError: the scenario or its run table breaks a rule; all of them are listed.
        InfeasibleError: no layout fits, or failures come so fast that nothing is trained.
    """
    from planner.goodput import run_plan

    loaded = read_scenario(scenario)
    chosen = loaded.file.layout and scenario_layout(loaded)
    if chosen is None:
        chosen = _fastest(loaded)
    forecaster, layout = _prepare(loaded, chosen)
    with _overflow_refused(loaded.where):
        result = _finite(forecaster.simulate(layout, spans=False), loaded)
        return layout, result, _finite_run(run_plan(loaded, layout, result, forecaster), loaded)


def run_of_plan(scenario: Scenario, plan: Plan) -> RunPlan | None:
    """Return the whole run of a plan's best layout; None where the scenario has no run table.

    Raises:
        InputError: the run table breaks a rule.
        InfeasibleError: failures come so fast that nothing is trained.
    """
    from planner.goodput import run_plan
    from planner.variants import varied_scenario

    if scenario.file.run is None or not plan.layouts:
        return None
    best = plan.layouts[0]
    with _overflow_refused(scenario.where):
        run = run_plan(varied_scenario(scenario, best.varied), best.layout, best)
    return _finite_run(run, scenario)


def _finite_run(run: RunPlan, scenario: Scenario) -> RunPlan:
    """Return the run; raise `InputError` where absurd inputs overflowed it."""
    energy, failures, data = run.energy, run.failures, run.data
    numbers = [run.days.p90, run.accelerator_hours.p90, run.ideal.cost or 0.0]
    numbers += [data.total_bytes, data.read_rate, data.seconds_per_sample_of_worker or 0.0]
    numbers += [each.p90 for each in (run.cost, energy.machines, energy.site, energy.co2) if each]
    numbers += [failures.mtbf.p90, failures.first_order_goodput] if failures else []
    numbers += [choice.node_days for choice in failures.spare_choices] if failures else []
    _refuse_overflow(numbers, scenario.where)
    return run


def _fastest(scenario: Scenario) -> ParallelLayout:
    found = plan(scenario).layouts
    if not found:
        raise InfeasibleError(
            Problem(
                where=scenario.where,
                rule="no layout is legal and fits in memory",
                fix="`traincast plan` says what comes closest",
            )
        )
    return found[0].layout


def explain(
    scenario: Scenario | Path | str,
    layout_key: str = "",
    *,
    progress: Callable[[int, int], None] | None = None,
    mapped: bool = False,
) -> Explanation:
    """Return the plan of a scenario, and how each of a list of changes would move its step.

    `layout_key` names a kind of layouts, as "tp=16": what would make one of them the best. If
    `mapped`, the plan has the best layout of each tp and pp.

    Raises:
        InputError: the scenario breaks a rule, or a change names what is not there.
    """
    from planner.explaining import explain as explained
    from planner.worthwhile import wanted_of

    loaded = read_scenario(scenario)
    wanted = wanted_of(layout_key, loaded.where) if layout_key else None
    with _overflow_refused(loaded.where):
        found = explained(loaded, wanted, progress=progress, mapped=mapped)
    outcomes = [outcome for each in found.what_ifs for outcome in (each.same, each.best)]
    numbers = [n for each in outcomes for n in (each.step_time, each.speedup, each.peak_memory)]
    _refuse_overflow(numbers, loaded.where)
    return found


def place_ranks(
    scenario: Scenario | Path | str,
    *,
    goal: Goal,
    budget: int,
    progress: Callable[[int, int], None] | None = None,
) -> Placing:
    """Return a better order of the ranks of the scenario's layout, and the step in both orders.

    `progress` is told how many orders of how many were looked at.

    Raises:
        InputError: the scenario or the layout breaks a rule; all of them are listed.
    """
    from planner.placing import place

    loaded = read_scenario(scenario)
    with _overflow_refused(loaded.where):
        layout = scenario_layout(loaded)
        placing = place(loaded, layout, goal=goal, budget=budget, progress=progress)
    _refuse_overflow(
        [
            *(order.step_time for order in (placing.before, placing.found)),
            *(order.score.seconds for order in (placing.before, placing.found)),
        ],
        loaded.where,
    )
    return placing


def validate(rows: Path | str, profile: str | None = None, stack: str | None = None) -> Validation:
    """Return every measured row of a CSV file beside its forecast.

    `profile` and `stack` (a shipped name or a .toml file) take the place of what the rows name.

    Raises:
        InputError: the file cannot be read, or there is no such profile or stack.
    """
    from calibrate.validation import validate_rows

    with _overflow_refused(str(rows)):
        return validate_rows(rows, profile, stack)


def read_scenario(scenario: Scenario | Path | str) -> Scenario:
    """Return a scenario, read from its file where it is a path."""
    return scenario if isinstance(scenario, Scenario) else load_scenario(scenario)


def _prepare(
    scenario: Scenario, layout: ParallelLayout | None
) -> tuple[Forecaster, ParallelLayout]:
    from simulator.api import Forecaster

    chosen = layout or scenario_layout(scenario)
    forecaster = Forecaster.of(scenario)
    forecaster.check(chosen, scenario.where)
    return forecaster, chosen


def _finite(result: StepResult, scenario: Scenario) -> StepResult:
    """Return the result; raise `InputError` where absurd inputs overflowed it, or the run of it."""
    numbers = [result.high, result.hardware_flops, result.mfu, result.hfu, result.peak_memory]
    numbers += [result.tokens_per_second, *result.breakdown.seconds.values()]
    steps = (scenario.file.job.tokens or 0) / result.tokens
    rate = mean_price(scenario.parts).per_accelerator_hour or 1.0
    run = steps * result.high * result.world_size
    _refuse_overflow([*numbers, run, run * rate], scenario.where)
    return result


@contextmanager
def _overflow_refused(where: str) -> Iterator[None]:
    """Raise `InputError` where absurd inputs overflow a number on the way to the result."""
    try:
        yield
    except OverflowError:
        _refuse_overflow([inf], where)


def _refuse_overflow(numbers: Iterable[float], where: str) -> None:
    if not all(map(isfinite, numbers)):
        raise InputError(
            Problem(
                where=where,
                rule="its numbers are so far out of proportion that the forecast is not finite",
                fix="look for huge or tiny values in the model, stack and profile that it names",
            )
        )
