"""What the verbs compute: one step of a scenario's layout, a plan, a validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.errors import InputError, Problem
from simulator.parallel.layout import ParallelLayout
from simulator.results import StepResult
from simulator.scenario import Scenario, load_scenario

if TYPE_CHECKING:
    from calibrate.validation import Validation
    from planner import Plan
    from planner.placement_score import Goal
    from planner.placing import Placing
    from simulator.api import Forecaster
    from simulator.interchange.export import StepTrace

_DETAILED_MICRO_BATCHES = 2
"""Micro-batches whose passes are traced operator by operator."""


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


def trace_step(scenario: Scenario | Path | str, result: StepResult) -> dict[str, Any]:
    """Return the simulated step of the scenario's layout as a Chrome trace (JSON).

    The passes of the first micro-batches are shown with the operators and collectives in them.
    """
    from reports.trace import step_trace
    from simulator.cost.timeline import operator_spans

    loaded = read_scenario(scenario)
    forecaster, layout = _prepare(loaded, None)
    program = forecaster.program(layout)
    inside = operator_spans(forecaster.costs, program, result.spans, _DETAILED_MICRO_BATCHES)
    return step_trace(result, inside, loaded.title)


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
) -> Plan:
    """Return the fastest layouts of a scenario that fit, and why the others were refused.

    Where nothing fits, `layouts` is empty and `nearest` says what comes closest. `progress` is told
    how many layouts are settled, of how many.

    Raises:
        InputError: the scenario breaks a rule.
    """
    import planner

    loaded = read_scenario(scenario)
    with _overflow_refused(loaded.where):
        found = planner.plan(loaded, progress=progress)
    numbers = [n for each in found.layouts for n in (each.high, each.mfu, each.peak_memory)]
    numbers += [n for each in found.layouts for n in each.breakdown.seconds.values()]
    numbers += [miss.peak_memory for miss in found.nearest]
    run = found.run
    numbers += [run.cost or 0.0, run.days_high, run.accelerator_hours] if run else []
    _refuse_overflow(numbers, loaded.where)
    return found


def place_ranks(scenario: Scenario | Path | str, *, goal: Goal, budget: int) -> Placing:
    """Return a better order of the ranks of the scenario's layout, and the step in both orders.

    Raises:
        InputError: the scenario or the layout breaks a rule; all of them are listed.
    """
    from planner.placing import place

    loaded = read_scenario(scenario)
    with _overflow_refused(loaded.where):
        placing = place(loaded, scenario_layout(loaded), goal=goal, budget=budget)
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


def scenario_layout(scenario: Scenario) -> ParallelLayout:
    """Return the layout that a scenario gives; dp, left out, is what fills the cluster.

    Raises:
        InputError: it gives none, or tp x cp x pp does not divide the cluster.
    """
    layout = scenario.file.layout
    if layout is None:
        raise InputError(
            Problem(
                where=scenario.where,
                key="layout",
                rule="this scenario has no layout to simulate",
                fix="add a [layout] table, or let `traincast plan` find one",
            )
        )
    if "dp" in layout.model_fields_set:
        return layout
    inner, world = layout.tp * layout.cp * layout.pp, scenario.world_size
    if world % inner:
        raise InputError(
            Problem(
                where=scenario.where,
                key="layout",
                found=f"tp {layout.tp} x cp {layout.cp} x pp {layout.pp} = {inner}",
                rule=f"tp x cp x pp must divide the {world} accelerators of the cluster",
                fix="another tp, cp or pp, or another number of nodes",
            )
        )
    return layout.model_copy(update={"dp": world // inner})


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
    rate = scenario.profile.machine.price.per_accelerator_hour or 1.0
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
