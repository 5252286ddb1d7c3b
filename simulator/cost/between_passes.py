"""What is sent between passes: activations, gradients and parameters, as collectives with times."""

from __future__ import annotations

from simulator.cost.collectives.select import CollectiveCosts
from simulator.cost.plan import CommPlan
from simulator.cost.upkeep import UpkeepTimes
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import DataParallel
from simulator.parallel.program import StepProgram
from simulator.parallel.segments import WHOLE_CHUNK, Segment
from simulator.parallel.traffic import Payload, gathered, reduced, updated
from simulator.schedule.tasks import Work, WorkKind

_TRANSFERS = {
    WorkKind.SEND_FORWARD: (1, False),
    WorkKind.SEND_BACKWARD: (-1, False),
    WorkKind.EXCHANGE_FORWARD: (1, True),
    WorkKind.EXCHANGE_BACKWARD: (-1, False),
}
"""Places that an activation moves on by, and whether its receiver sends first.

Of two ranks that exchange, the one that comes later sends what the other one waits for, and its own
request goes out behind that. It is the stage behind: having waited longer for one input, it comes
later to the exchange that brings the next one.
"""


class BetweenPasses:
    """Plans the collectives of step programs, each alone on its links."""

    def __init__(self, collectives: CollectiveCosts, upkeep: UpkeepTimes) -> None:
        self.collectives, self._upkeep = collectives, upkeep

    def plans(self, program: StepProgram, work: Work) -> tuple[CommPlan, ...]:
        """Return the collectives of a communication work, one after another."""
        if work.kind in _TRANSFERS:
            return self._transfer(program, work)
        match work.kind:
            case WorkKind.TIED_REDUCE:
                pair = program.stage_pair(0, program.layout.pp - 1)
                table = float(program.local_vocab) * program.model.hidden_size
                payload = table * program.numbers.reduce
                return (self._plan(Collective.ALL_REDUCE, payload, pair),)
            case WorkKind.REDUCE:
                segment = segment_of(program, work)
                plans = self._reduction(program, segment)
                return self._upkeep.with_copies(program, work.kind, segment, plans)
            case WorkKind.AVERAGE:
                copied = updated(program, segment_of(program, work))
                return self._over_copies(Collective.ALL_REDUCE, program, copied)
            case WorkKind.BROADCAST:
                copied = updated(program, segment_of(program, work))
                return self._over_copies(Collective.BROADCAST, program, copied)
            case _:
                segment = segment_of(program, work)
                copied = gathered(program, segment)
                plans = self._over_copies(Collective.ALL_GATHER, program, copied)
                return self._upkeep.with_copies(program, work.kind, segment, plans)

    def _over_copies(
        self, collective: Collective, program: StepProgram, payload: Payload
    ) -> tuple[CommPlan, ...]:
        """Parameters over their data ranks, then routed experts over theirs."""
        plan = self._plan(collective, payload.rest, program.data_group)
        if not payload.experts:
            return (plan,)
        return plan, self._plan(collective, payload.experts, program.expert_data_group)

    def _transfer(self, program: StepProgram, work: Work) -> tuple[CommPlan, ...]:
        """An activation goes to the next stage, in slices that are then gathered."""
        way, exchange = _TRANSFERS[work.kind]
        pair = program.place_pair(work.chunk, work.chunk + way)
        send = self._plan(Collective.SEND_RECV, program.boundary, pair)
        send = self.collectives.exchanged(send) if exchange else send
        if not program.regathered:
            return (send,)
        group = program.shard.tensor_group
        return send, self._plan(Collective.ALL_GATHER, program.regathered, group)

    def _reduction(self, program: StepProgram, segment: Segment) -> tuple[CommPlan, ...]:
        """Gradients over the ranks with copies of them; those of routed experts have their own."""
        payload = reduced(program, segment)
        groups = program.data_group, program.replica_group
        plans = self._reduced(program, payload.rest, *groups)
        if not payload.experts:
            return plans
        groups = program.expert_data_group, program.expert_replica_group
        return plans + self._reduced(program, payload.experts, *groups)

    def _reduced(
        self, program: StepProgram, payload: float, group: GroupShape, replicas: GroupShape
    ) -> tuple[CommPlan, ...]:
        """Gradients: reduced to a server, all-reduced, or scattered and reduced over replicas."""
        if program.layout.data_parallel is DataParallel.PARAMETER_SERVER:
            return (self._plan(Collective.REDUCE, payload, group),)
        if program.layout.zero_stage == 0:
            return (self._plan(Collective.ALL_REDUCE, payload, group),)
        scatter = self._plan(Collective.REDUCE_SCATTER, payload, group)
        if replicas.size == 1:
            return (scatter,)
        return scatter, self._plan(Collective.ALL_REDUCE, payload / group.size, replicas)

    def _plan(self, collective: Collective, payload: float, group: GroupShape) -> CommPlan:
        return self.collectives.plan(collective, payload, group)


def segment_of(program: StepProgram, work: Work) -> Segment:
    """Return the part of a chunk that a work passes over."""
    chunk = program.chunks[work.chunk]
    return chunk.whole if work.segment == WHOLE_CHUNK else chunk.segments[work.segment]
