"""What waits for what in a played step: bars of its timeline, two and two.

Bars of one stream follow each other anyway; a flow is what the graph of the step says beyond that.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from simulator.cost.timeline import COLLECTIVE
from simulator.results import Span
from simulator.schedule.tasks import NO_TASK, STREAMS, StreamKind, TaskGraph, Work, WorkKind


class FlowKind(StrEnum):
    """What goes from one bar to another."""

    FORWARD = "forward"
    """Activations of a micro-batch."""
    BACKWARD = "backward"
    """Their gradients."""
    WEIGHT = "weight gradients"
    """From the part of a backward pass that the stage before waits for to the part put off."""
    PARAMETERS = "parameters"
    PREFETCH = "prefetch"
    """A gather waits for the pass whose end frees its room."""
    GRADIENTS = "gradients"
    NORM = "gradient norm"
    """The optimizer waits for the last stage to be ready."""
    COLLECTIVE = "collective"
    """Inside a pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """`target` starts when `source` has ended, or later."""

    source: Span
    target: Span
    kind: FlowKind


_FORWARD_TASKS = (WorkKind.FORWARD, WorkKind.SEND_FORWARD, WorkKind.EXCHANGE_FORWARD)
_GATHERS = (WorkKind.GATHER, WorkKind.GATHER_CHUNK, WorkKind.BROADCAST, WorkKind.AVERAGE)
_REDUCES = (WorkKind.REDUCE, WorkKind.TIED_REDUCE)
_YIELDS = (WorkKind.BACKWARD, WorkKind.BACKWARD_WEIGHT)
_SENDS = (
    WorkKind.SEND_FORWARD,
    WorkKind.SEND_BACKWARD,
    WorkKind.EXCHANGE_FORWARD,
    WorkKind.EXCHANGE_BACKWARD,
)
_COMPUTE = StreamKind.COMPUTE.name.lower()
_SAME_TIME = 1e-12
"""Seconds within which two times are one: sums of doubles differ in their last digits, and no
kernel is that short."""


def step_flows(graph: TaskGraph, spans: Sequence[Span]) -> tuple[Flow, ...]:
    """Return the flows between the bars of a step, by their targets in the order of the graph.

    `spans` are those of the tasks of `graph` that take time, in its order. What a task waits for is
    followed back through those that take none, and through joins. The optimizer is shown to wait
    for the last reduction of each segment of its stage (for the last pass of each chunk that is
    never reduced), and for the stage that is ready last.
    """
    bars = _bars_of(graph, spans)
    finals = _final_gradients(graph, bars)
    found: list[Flow] = []
    for task, target in bars.items():
        if graph.works[graph.work[task]].kind is WorkKind.OPTIMIZER:
            found += _of_optimizer(graph, bars, task, finals)
            continue
        for source in dict.fromkeys(_sources(graph, bars, task)):
            kind = _kind(graph, source, task)
            found.append(Flow(source=bars[source], target=target, kind=kind))
    return tuple(found)


def _bars_of(graph: TaskGraph, spans: Iterable[Span]) -> dict[int, Span]:
    """Return the bar of each task that has one, in the order of the graph.

    Where only some of several tasks that look alike took time, which is not known: none has one.
    """
    alike: defaultdict[tuple[object, ...], list[Span]] = defaultdict(list)
    for span in spans:
        alike[span.stage, span.stream, span.name, span.chunk, span.micro_batch].append(span)
    tasks: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    names = [work.kind.name.lower() for work in graph.works]
    streams = [kind.name.lower() for kind in StreamKind]
    rows = zip(graph.work, graph.stream, graph.micro_batch, strict=True)
    for task, (number, lane, micro_batch) in enumerate(rows):
        stage, stream = divmod(lane, STREAMS)
        known = micro_batch if micro_batch >= 0 else None
        tasks[stage, streams[stream], names[number], graph.works[number].chunk, known].append(task)
    found = {
        task: span
        for key, own in tasks.items()
        if len(own) == len(alike[key])
        for task, span in zip(own, alike[key], strict=True)
    }
    return dict(sorted(found.items()))


def _sources(graph: TaskGraph, bars: Mapping[int, Span], task: int) -> Iterator[int]:
    """Yield the tasks with bars that a task waits for; what needs no transfer waits for a pass."""
    local = graph.works[graph.work[task]].kind in (*_REDUCES, WorkKind.BACKWARD_WEIGHT)
    waiting = [graph.first[task], graph.second[task]]
    seen: set[int] = set()
    while waiting:
        source = waiting.pop(0)
        if source == NO_TASK or source in seen:
            continue
        seen.add(source)
        sends = graph.works[graph.work[source]].kind in _SENDS
        if source in bars and not (local and sends):
            yield source
        else:
            waiting += [graph.first[source], graph.second[source]]


def _kind(graph: TaskGraph, source: int, target: int) -> FlowKind:
    one, other = (graph.works[graph.work[task]].kind for task in (source, target))
    if one in _GATHERS or other in (WorkKind.GATHER_CHUNK, WorkKind.BROADCAST, WorkKind.AVERAGE):
        return FlowKind.PARAMETERS
    if other is WorkKind.GATHER:
        return FlowKind.PREFETCH
    if other in _REDUCES:
        return FlowKind.GRADIENTS
    if other is WorkKind.BACKWARD_WEIGHT:
        return FlowKind.WEIGHT
    return FlowKind.FORWARD if other in _FORWARD_TASKS else FlowKind.BACKWARD


def _final_gradients(graph: TaskGraph, bars: Mapping[int, Span]) -> Mapping[int, list[int]]:
    """Return for each stage the tasks whose ends make its gradients those of the step."""
    reduced: dict[Work, int] = {}
    passes: dict[tuple[int, int], int] = {}
    for task, number in enumerate(graph.work):
        work = graph.works[number]
        if work.kind in _REDUCES and task in bars:
            reduced[work] = task
        elif work.kind in _YIELDS:
            passes[work.stage, work.chunk] = task
    chunks = {(work.stage, work.chunk) for work in reduced if work.kind is WorkKind.REDUCE}
    found: defaultdict[int, list[int]] = defaultdict(list)
    for work, task in reduced.items():
        found[work.stage].append(task)
    for (stage, chunk), task in passes.items():
        if (stage, chunk) not in chunks:
            found[stage] += [task] if task in bars else _sources(graph, bars, task)
    return {stage: list(dict.fromkeys(tasks)) for stage, tasks in found.items()}


def _of_optimizer(
    graph: TaskGraph, bars: Mapping[int, Span], task: int, finals: Mapping[int, list[int]]
) -> Iterator[Flow]:
    target = bars[task]
    for source in finals.get(target.stage, ()):
        yield Flow(source=bars[source], target=target, kind=FlowKind.GRADIENTS)
    others = [bars[source] for source in _sources(graph, bars, task)]
    last = max(others, key=lambda span: span.stop, default=None)
    if last is not None and last.stage != target.stage:
        yield Flow(source=last, target=target, kind=FlowKind.NORM)


def flows_inside(passes: Iterable[Span], pieces: Iterable[Span]) -> tuple[Flow, ...]:
    """Return what each collective inside a pass waits for, and what waits for it.

    A collective has one flow from the piece of its pass that ended last before it began, and one to
    the piece that began first after it had ended; so one that hides behind operators is joined to
    those around them. What begins or ends a pass has only the other one.
    """
    by_stage: defaultdict[int, list[Span]] = defaultdict(list)
    for piece in sorted(pieces, key=lambda piece: (piece.start, piece.stop)):
        if piece.stop > piece.start:
            by_stage[piece.stage].append(piece)
    starts = {stage: [piece.start for piece in own] for stage, own in by_stage.items()}
    found: list[Flow] = []
    for each in passes:
        if each.stage in by_stage and each.stream == _COMPUTE:
            first, last = (bisect_left(starts[each.stage], end) for end in (each.start, each.stop))
            found += _in_pass(by_stage[each.stage][first:last])
    return tuple(found)


def _in_pass(pieces: Sequence[Span]) -> Iterator[Flow]:
    """Yield the flows of one pass, its `pieces` by start."""
    starts = [piece.start for piece in pieces]
    by_stop = sorted(pieces, key=lambda piece: piece.stop)
    stops = [piece.stop for piece in by_stop]
    joined: set[tuple[int, int]] = set()
    for piece in pieces:
        if piece.stream != COLLECTIVE:
            continue
        before = bisect_right(stops, piece.start + _SAME_TIME)
        behind = bisect_left(starts, piece.stop - _SAME_TIME)
        pairs = [(by_stop[before - 1], piece)] if before else []
        pairs += [(piece, pieces[behind])] if behind < len(pieces) else []
        for source, target in pairs:
            if (id(source), id(target)) not in joined:
                joined.add((id(source), id(target)))
                yield Flow(source=source, target=target, kind=FlowKind.COLLECTIVE)
