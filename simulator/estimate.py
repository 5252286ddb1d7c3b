"""The closed-form interpreter: when every task of a step ends if no two transfers share a link."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from simulator.cost.priced import WorkCost
from simulator.results import Category, Span
from simulator.schedule.tasks import STREAMS, StreamKind, TaskGraph, WorkKind
from simulator.schedule.timing import task_ends

_SENDS = (
    WorkKind.SEND_FORWARD,
    WorkKind.SEND_BACKWARD,
    WorkKind.EXCHANGE_FORWARD,
    WorkKind.EXCHANGE_BACKWARD,
)
_PASSES = (
    WorkKind.FORWARD,
    WorkKind.BACKWARD,
    WorkKind.BACKWARD_INPUT,
    WorkKind.BACKWARD_WEIGHT,
)
_BLOCKING = {
    **dict.fromkeys(_SENDS, Category.PIPELINE_COMM),
    **dict.fromkeys((WorkKind.GATHER, WorkKind.REDUCE), Category.DATA_COMM),
}
"""What a transfer is where it runs on the compute stream and holds it up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When each task of a graph starts and ends, in seconds from the start of the step."""

    start: Sequence[float]
    end: Sequence[float]

    @property
    def step_time(self) -> float:
        """End of the last task, seconds."""
        return max(self.end)


def estimate_step_time(graph: TaskGraph, costs: Sequence[WorkCost]) -> float:
    """Return the step time in seconds; `costs[i]` is the cost of `graph.works[i]`.

    The recursion of `task_ends`; exact where no two transfers share a link.
    """
    return max(_ends(graph, costs)[:-1])


def estimate_timing(graph: TaskGraph, costs: Sequence[WorkCost]) -> Timing:
    """Return start and end of every task; the same recursion as `estimate_step_time`."""
    ends = _ends(graph, costs)[:-1]
    seconds = [cost.seconds for cost in costs]
    starts = [end - seconds[work] for end, work in zip(ends, graph.work, strict=True)]
    return Timing(start=starts, end=ends)


def _ends(graph: TaskGraph, costs: Sequence[WorkCost]) -> list[float]:
    seconds = [cost.seconds for cost in costs]
    return task_ends(graph, map(seconds.__getitem__, graph.work))


def breakdown_of(
    graph: TaskGraph,
    costs: Sequence[WorkCost],
    timing: Timing,
    stage: int,
    slowdown: float | None = 1.0,
) -> dict[Category, float]:
    """Return the step of one stage by category; the categories add up to the step time.

    Compute is split as its blocks say, times the stage's `slowdown`, or stretched to the time that
    it took where that is None (interference); time in which the compute
    stream waits is a bubble where the task it waits for is another stage's, else exposed
    data-parallel communication.
    """
    totals: dict[Category, float] = {}
    clock, compute = 0.0, STREAMS * stage + StreamKind.COMPUTE
    for task in [task for task, stream in enumerate(graph.stream) if stream == compute]:
        idle = timing.start[task] - clock
        if idle > 0:
            data = min(idle, _waited_for_data(graph, timing, task))
            _add(totals, Category.DATA_COMM, data)
            _add(totals, Category.BUBBLE, idle - data)
        cost = costs[graph.work[task]]
        held_by = _BLOCKING.get(graph.works[graph.work[task]].kind)
        if held_by is not None:
            _add(totals, held_by, timing.end[task] - timing.start[task])
        took = timing.end[task] - timing.start[task]
        factor = took / (cost.seconds or 1.0) if slowdown is None else slowdown
        for category, seconds in cost.by_category.items():
            _add(totals, category, seconds * factor)
        if cost.bursts and slowdown is not None:
            _add_waits(totals, cost, took - cost.seconds * slowdown)
        clock = timing.end[task]
    _add(totals, Category.DATA_COMM, timing.step_time - clock)
    return {category: totals.get(category, 0.0) for category in Category}


def _add_waits(totals: dict[Category, float], cost: WorkCost, longer: float) -> None:
    """Add what a pass waited for shared links to what it sends over them, by time on them."""
    sending = sum(burst.phase.seconds for burst in cost.bursts)
    for burst in cost.bursts:
        _add(totals, burst.category, longer * burst.phase.seconds / sending)


def busiest_stage(
    graph: TaskGraph, costs: Sequence[WorkCost], slowdown: Sequence[float] | None = None
) -> int:
    """Return the stage whose compute stream works longest: the one that sets the pace."""
    busy = [0.0] * graph.pp
    for work, stream in zip(graph.work, graph.stream, strict=True):
        if stream % STREAMS == StreamKind.COMPUTE:
            busy[stream // STREAMS] += costs[work].seconds
    if slowdown is not None:
        busy = [seconds * factor for seconds, factor in zip(busy, slowdown, strict=True)]
    return busy.index(max(busy))


def _waited_for_data(graph: TaskGraph, timing: Timing, task: int) -> float:
    """Return for how long before `task` starts only data-parallel collectives have held it up.

    What it waits for is followed back through collectives and joins to the pass whose end let them
    start.
    """
    waited_for = task
    while True:
        waits = [t for t in (graph.first[waited_for], graph.second[waited_for]) if t >= 0]
        if not waits:
            return math.inf if waited_for != task else 0.0
        waited_for = max(waits, key=timing.end.__getitem__)
        kind = graph.works[graph.work[waited_for]].kind
        if kind in (*_PASSES, *_SENDS):
            return max(0.0, timing.start[task] - timing.end[waited_for])


def _add(totals: dict[Category, float], category: Category, seconds: float) -> None:
    totals[category] = totals.get(category, 0.0) + seconds


def spans_of(graph: TaskGraph, timing: Timing) -> tuple[Span, ...]:
    """Return every task that takes any time as a bar of a timeline."""
    names = [work.kind.name.lower() for work in graph.works]
    streams = [kind.name.lower() for kind in StreamKind]
    rows = zip(graph.work, graph.stream, graph.micro_batch, timing.start, timing.end, strict=True)
    return tuple(
        Span(
            stage=lane // STREAMS,
            stream=streams[lane % STREAMS],
            name=names[number],
            start=start,
            stop=stop,
            micro_batch=micro_batch if micro_batch >= 0 else None,
            chunk=graph.works[number].chunk,
        )
        for number, lane, micro_batch, start, stop in rows
        if stop > start
    )
