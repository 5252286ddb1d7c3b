"""The tables of a report: pure functions from a result to sections, by its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from reports.page.sections import forecasts, measured, plans, runs
from reports.result_files import Result, ResultKind
from reports.section import Section
from reports.words import Words

Builder = Callable[[Any, Words], Iterator[Section]]


def sections_of_result(result: Result, words: Words) -> tuple[Section, ...]:
    """Return the sections of a result; those that it holds nothing for are left out."""
    return tuple(section for build in SECTIONS[result.kind] for section in build(result, words))


def _of_plan(build: Builder) -> Builder:
    return lambda explained, words: build(explained.plan, words)


_PLAN: Sequence[Builder] = (
    plans.layouts,
    plans.front,
    plans.searched,
    plans.nearest,
    plans.remedies,
    forecasts.constants,
)
SECTIONS: dict[ResultKind, Sequence[Builder]] = {
    ResultKind.STEP: (
        forecasts.step,
        forecasts.memory,
        forecasts.operators,
        forecasts.links,
        forecasts.constants,
    ),
    ResultKind.PLAN: (*_PLAN, runs.whole_run),
    ResultKind.EXPLAIN: (plans.what_if, *map(_of_plan, _PLAN)),
    ResultKind.GOODPUT: (runs.run, forecasts.constants),
    ResultKind.SWEEP: (measured.sweep,),
    ResultKind.COMPARE: (measured.comparison, measured.changed),
    ResultKind.VALIDATION: (measured.groups, measured.rows),
    ResultKind.CALIBRATION: (measured.calibration,),
    ResultKind.TRACE_COMPARISON: (measured.trace,),
}
"""In the order of a report."""
