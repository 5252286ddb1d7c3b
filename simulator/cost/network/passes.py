"""What collectives inside passes send over the network, found from the blocks of the passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from simulator.cost.between_passes import segment_of
from simulator.cost.blocks import BlockCost
from simulator.cost.network.bursts import Inside, PassFlow, bursts_of, only_exposed, repeated
from simulator.cost.network.groups import Together
from simulator.cost.step_costs import StepCosts
from simulator.parallel.program import StepProgram
from simulator.parallel.split_backward import split_backward
from simulator.parallel.work import Block, CommWork
from simulator.schedule.tasks import Work, WorkKind

_BACKWARD = (WorkKind.BACKWARD, WorkKind.BACKWARD_INPUT)
"""Passes that hold the collectives of the backward block and of what is computed again; weight
gradients have none."""


def pass_flows(costs: StepCosts, program: StepProgram, works: Sequence[Work]) -> Inside:
    """Return what passes send between scale-up domains; those that send nothing are left out."""
    found = {}
    for number, work in enumerate(works):
        flows: list[PassFlow] = []
        layers = 0
        for block, cost, count in _priced_blocks(costs, program, work):
            own = list(_flows(costs, work, block, cost, count))
            flows += own
            layers += count if own else 0
        if flows:
            found[number] = tuple(flows), layers
    return found


def pass_collectives(costs: StepCosts, program: StepProgram, work: Work) -> Mapping[CommWork, int]:
    """Return the collectives of one run of a pass, with how often each is done."""
    found: Counter[CommWork] = Counter()
    if work.kind is not WorkKind.FORWARD and work.kind not in _BACKWARD:
        return found
    for priced, count in costs.parts(program, segment_of(program, work)):
        passes = priced.passes
        backward = work.kind in _BACKWARD
        for block in (passes.backward, passes.recompute) if backward else (passes.forward,):
            for comm in _collectives(block):
                found[comm] += count
    return found


def _priced_blocks(
    costs: StepCosts, program: StepProgram, work: Work
) -> Iterator[tuple[Block, BlockCost, int]]:
    """Yield the blocks of a pass with their costs, and how often each is run."""
    if work.kind is not WorkKind.FORWARD and work.kind not in _BACKWARD:
        return
    for priced, count in costs.parts(program, segment_of(program, work)):
        passes = priced.passes
        if work.kind is WorkKind.FORWARD:
            if _crosses(passes.forward):
                yield passes.forward, priced.forward, count
            continue
        if _crosses(passes.recompute):
            yield passes.recompute, priced.recompute, count
        if not _crosses(passes.backward):
            continue
        if work.kind is WorkKind.BACKWARD_INPUT:
            yield split_backward(passes.backward)[0], costs.split_pass(priced)[0], count
        else:
            yield passes.backward, priced.backward, count


def _crosses(block: Block) -> bool:
    """Return whether any collective of a block leaves its scale-up domain."""
    return any(map(_leaves, _collectives(block)))


def _leaves(comm: CommWork) -> bool:
    return comm.group.domains > 1 and comm.group.stride > 0


def _collectives(block: Block) -> Iterator[CommWork]:
    yield from (piece for piece in block.pieces if isinstance(piece, CommWork))


def _flows(
    costs: StepCosts, work: Work, block: Block, cost: BlockCost, count: int
) -> Iterator[PassFlow]:
    """Yield what a block sends in `count` runs."""
    seconds = {piece.name: piece.seconds for piece in cost.pieces}
    found: list[PassFlow] = []
    for piece, priced in zip(block.pieces, cost.pieces, strict=True):
        if not isinstance(piece, CommWork) or not _leaves(piece):
            continue
        groups = Together(stage=work.stage, size=piece.group.size, stride=piece.group.stride)
        window = sum(seconds.get(name, 0.0) for name in piece.hidden_by)
        plan = costs.kernels.comm_plan(piece)
        found += bursts_of(plan, piece, priced, groups, window)
    if sum(burst.seconds for flow in found for burst in flow.bursts) > cost.seconds:
        # Some hide behind the same compute at once: then only what is not hidden meets others.
        found = list(map(only_exposed, found))
    yield from (repeated(flow, count) for flow in found)
