"""The figures of a result: pure functions from a result to figures as numbers, by its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reports.charts import Figure
from reports.report_figures import (
    comparison,
    measured,
    memory,
    network,
    plan,
    roofline,
    run,
    step,
    sweep,
)
from reports.result_files import PlanFile, Result, ResultKind
from reports.words import Words

Builder = Callable[[Any, Words], Iterator[Figure]]


def figures_of_result(result: Result, words: Words) -> tuple[Figure, ...]:
    """Return the figures of a result; those that it holds nothing for are left out."""
    return tuple(figure for build in FIGURES[result.kind] for figure in build(result, words))


def _of_plan(build: Builder) -> Builder:
    return lambda explained, words: build(explained.plan, words)


def _of_run(build: Builder) -> Builder:
    def figures(result: Any, words: Words) -> Iterator[Figure]:
        whole = result.whole_run if isinstance(result, PlanFile) else result.run
        return build(whole, words) if whole is not None else iter(())

    return figures


_RUN: Sequence[Builder] = tuple(map(_of_run, (run.days, run.wall_time, run.intervals)))
_PLAN: Sequence[Builder] = (plan.layout_map, plan.top_layouts, plan.best_two, plan.front)
FIGURES: dict[ResultKind, Sequence[Builder]] = {
    ResultKind.STEP: (
        step.breakdown,
        step.timeline,
        memory.memory_parts,
        memory.memory_over_time,
        roofline.roofline,
        network.network,
    ),
    ResultKind.PLAN: (*_PLAN, plan.uncertainty, *_RUN),
    ResultKind.EXPLAIN: (plan.tornado, plan.sensitivities, *map(_of_plan, _PLAN)),
    ResultKind.GOODPUT: _RUN,
    ResultKind.SWEEP: (sweep.of_sweep,),
    ResultKind.COMPARE: (comparison.of_comparison,),
    ResultKind.VALIDATION: (measured.validation,),
    ResultKind.CALIBRATION: (measured.curves, measured.checked, measured.pairs),
    ResultKind.TRACE_COMPARISON: (measured.trace,),
}
"""In the order of a report."""
