"""Steps of small layouts as traces, and traces made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from simulator.api import Forecaster
from simulator.estimate import estimate_step_time
from simulator.interchange.export import StepTrace, trace_step
from simulator.interchange.records import NodeKind, RankTrace, TraceNode, Workload
from simulator.parallel.groups import Collective
from simulator.parallel.layout import ParallelLayout
from simulator.schedule.graph import build_graph
from simulator.schedule.shape import graph_shape
from tests.simulator.steps import forecaster


def traced(layout: ParallelLayout, cast: Forecaster | None = None, **options: Any) -> StepTrace:
    """Return the step of a layout, of a machine of round numbers unless `cast` says otherwise."""
    cast = cast or forecaster(layout)
    program = cast.program(layout)
    graph = build_graph(graph_shape(program, averages=True))
    prices = cast.costs.durations(program, graph.works)
    return trace_step(program, graph, cast.costs, prices, **options)


def estimated(layout: ParallelLayout, cast: Forecaster | None = None) -> float:
    """Return the step time of the closed form, seconds."""
    cast = cast or forecaster(layout)
    program = cast.program(layout)
    graph = build_graph(graph_shape(program, averages=True))
    return estimate_step_time(graph, cast.costs.durations(program, graph.works))


def compute(number: int, seconds: float, *after: int, **known: Any) -> TraceNode:
    return TraceNode(
        number=number,
        name=f"compute {number}",
        kind=NodeKind.COMPUTE,
        after=after,
        seconds=seconds,
        **known,
    )


def together(
    number: int, collective: Collective, size: float, *after: int, **known: Any
) -> TraceNode:
    return TraceNode(
        number=number,
        name=collective.value,
        kind=NodeKind.COLLECTIVE,
        after=after,
        size=size,
        collective=collective,
        **known,
    )


def message(number: int, kind: NodeKind, peer: int, *after: int, **known: Any) -> TraceNode:
    return TraceNode(number=number, name=kind.value, kind=kind, after=after, peer=peer, **known)


def workload(*ranks: RankTrace, groups: Mapping[int, tuple[int, ...]] | None = None) -> Workload:
    return Workload(ranks=ranks, groups=groups or {}, where="made by hand")
