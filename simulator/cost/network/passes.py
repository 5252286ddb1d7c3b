"""What collectives inside passes carry over the network in a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from simulator.cost.network.column import Column
from simulator.cost.network.groups import Together
from simulator.cost.network.network import Network
from simulator.cost.plan import LinkKind
from simulator.cost.step_costs import StepCosts, segment_of
from simulator.parallel.program import StepProgram
from simulator.parallel.work import Block, CommWork
from simulator.schedule.tasks import TaskGraph, Work, WorkKind

_BACKWARD = (WorkKind.BACKWARD, WorkKind.BACKWARD_INPUT)
"""Passes that hold the collectives of the backward block and of what is computed again; weight
gradients have none."""


def pass_columns(
    network: Network, costs: StepCosts, program: StepProgram, graph: TaskGraph
) -> Sequence[tuple[Column, float]]:
    """Return what the passes of a step load, with the wire bytes of a rank in all of them."""
    runs = Counter(graph.work)
    totals: dict[int, tuple[Column, float]] = {}
    for number, work in enumerate(graph.works):
        for column, carried in _loads(network, costs, program, work):
            before = totals.get(id(column), (column, 0.0))[1]
            totals[id(column)] = column, before + carried * runs[number]
    return tuple(totals.values())


def _loads(
    network: Network, costs: StepCosts, program: StepProgram, work: Work
) -> Iterator[tuple[Column, float]]:
    """Yield the columns of one run of a pass, with the wire bytes of a rank."""
    for comm, count in pass_collectives(costs, program, work).items():
        if comm.group.domains == 1 or not comm.group.stride:
            continue
        plan = costs.kernels.comm_plan(comm)
        groups = Together(stage=work.stage, size=comm.group.size, stride=comm.group.stride)
        for place, phase in enumerate(plan.phases):
            column = network.column(plan, place, groups, program.layout)
            if column is not None and phase.link is LinkKind.SCALE_OUT:
                yield column, phase.wire_bytes * comm.count * count


def pass_collectives(costs: StepCosts, program: StepProgram, work: Work) -> Mapping[CommWork, int]:
    """Return the collectives of one run of a pass, with how often each is done."""
    found: Counter[CommWork] = Counter()
    if work.kind is not WorkKind.FORWARD and work.kind not in _BACKWARD:
        return found
    for priced, count in costs.parts(program, segment_of(program, work)):
        passes = priced.passes
        backward = work.kind in _BACKWARD
        blocks = (passes.backward, passes.recompute) if backward else (passes.forward,)
        for comm in _of_blocks(blocks):
            found[comm] += count
    return found


def _of_blocks(blocks: Sequence[Block]) -> Iterator[CommWork]:
    for block in blocks:
        yield from (piece for piece in block.pieces if isinstance(piece, CommWork))
