"""What a rank sends along each axis in one step, counted from the step program itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from planner.placement_traffic import PLACED, goes_round
from simulator.api import Forecaster
from simulator.cost.network.passes import pass_collectives
from simulator.cost.plan import CommPlan
from simulator.parallel.groups import Collective, GroupShape, bus_factor
from simulator.parallel.layout import Axis, ParallelLayout
from simulator.parallel.program import StepProgram
from simulator.schedule.graph import build_graph
from simulator.schedule.shape import graph_shape
from simulator.schedule.tasks import Work, WorkKind

_TRANSFERS = (
    WorkKind.SEND_FORWARD,
    WorkKind.SEND_BACKWARD,
    WorkKind.EXCHANGE_FORWARD,
    WorkKind.EXCHANGE_BACKWARD,
)


def step_bytes(forecaster: Forecaster, layout: ParallelLayout) -> dict[Axis, float]:
    """Return the bytes that a rank sends in a step along each axis, as `Demand` counts them.

    A collective of `payload` bytes over n ranks counts bus factor x payload, whatever algorithm
    does it: an all-reduce 2 (n - 1) / n. Stages differ: it is their mean, for the pipeline that of
    the pairs of neighbours and of both ways. Of local SGD it is the mean over `sync_every` steps.
    Left out is the gradient of an embedding that first and last stage share.
    """
    program = forecaster.program(layout)
    graph = build_graph(graph_shape(program, averages=True))
    runs, total = Counter(graph.work), dict.fromkeys(Axis, 0.0)
    costs = forecaster.costs.alone(program, graph.works)
    for number, (work, cost) in enumerate(zip(graph.works, costs, strict=True)):
        often = runs[number] / _every(work, layout)
        for plan in cost.plans:
            total[_axis(program, work, plan)] += often * _sent(plan)
        for comm, count in pass_collectives(forecaster.costs, program, work).items():
            sent = bus_factor(comm.collective, comm.group.size) * comm.payload
            total[comm.axis] += often * count * comm.count * sent
    return dict(_by_rank(total, layout))


def _every(work: Work, layout: ParallelLayout) -> int:
    """Return in one of how many steps a work is done."""
    return layout.sync_every if work.kind is WorkKind.AVERAGE else 1


def _axis(program: StepProgram, work: Work, plan: CommPlan) -> Axis:
    """Return the axis along which a work between passes sends; HOST for none that is placed."""
    if work.kind is WorkKind.TIED_REDUCE:
        return Axis.HOST
    if work.kind in _TRANSFERS:
        return Axis.PIPELINE if plan.collective is Collective.SEND_RECV else Axis.TENSOR
    where = _where(plan.group)
    if where in map(_where, (program.data_group, program.replica_group)):
        return Axis.DATA
    assert where in map(_where, (program.expert_data_group, program.expert_replica_group))
    return Axis.EXPERT_DATA


def _where(group: GroupShape) -> tuple[int, int]:
    """Return what tells groups of different ranks apart; groups of one size compare equal."""
    return group.size, group.stride


def _sent(plan: CommPlan) -> float:
    return bus_factor(plan.collective, plan.group.size) * plan.payload


def _by_rank(total: Mapping[Axis, float], layout: ParallelLayout) -> Iterator[tuple[Axis, float]]:
    """Yield the bytes of one rank from those of one rank of every stage together."""
    neighbours = layout.pp if goes_round(layout) else layout.pp - 1
    for axis in PLACED:
        if total[axis] > 0:
            ranks = 2 * neighbours if axis is Axis.PIPELINE else layout.pp
            yield axis, total[axis] / ranks
