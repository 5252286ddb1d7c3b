"""Durations of all the work of a step, from a step program; each distinct block is priced once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from simulator.cost.blocks import BlockCost, KernelCosts
from simulator.cost.collectives.select import CollectiveCosts
from simulator.cost.memory_bound import memory_bound_seconds
from simulator.cost.plan import CommPlan
from simulator.hardware.kernel_constants import MemoryClass
from simulator.hardware.profile import Profile
from simulator.parallel.blocks import embedding_passes, head_passes, layer_passes
from simulator.parallel.groups import Collective, GroupShape
from simulator.parallel.layout import ZERO_GRADIENTS, DataParallel
from simulator.parallel.program import WHOLE_CHUNK, Segment, StepProgram
from simulator.parallel.shard import Shard
from simulator.parallel.work import Block, PassPair
from simulator.results import Category
from simulator.schedule.graph import Work, WorkKind
from simulator.workload.job import TrainingJob
from simulator.workload.layer import LayerSpec
from simulator.workload.model import ModelSpec, Position
from simulator.workload.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedPass:
    """A pass pair with the seconds of its blocks."""

    passes: PassPair
    forward: BlockCost
    backward: BlockCost
    recompute: BlockCost


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCost:
    """One kind of work: compute `seconds` split by category, or collectives one after another."""

    seconds: float
    by_category: Mapping[Category, float]
    plans: tuple[CommPlan, ...] = ()


_NOTHING = WorkCost(seconds=0.0, by_category={})
_ShardKey = tuple[object, ...]


class StepCosts:
    """Prices step programs of one model, job, stack and machine; owns the caches."""

    def __init__(self, model: ModelSpec, job: TrainingJob, stack: Stack, profile: Profile) -> None:
        self.model = model
        self.job = job
        self.stack = stack
        self.profile = profile
        self.collectives = CollectiveCosts(profile)
        self.kernels = KernelCosts(profile, stack, job.precision, self.collectives)
        self.blocks_priced = 0
        self._passes: dict[_ShardKey, PricedPass] = {}
        self._segments: dict[_ShardKey, tuple[WorkCost, WorkCost]] = {}

    def durations(self, program: StepProgram, works: tuple[Work, ...]) -> list[WorkCost]:
        """Return the cost of each work of a graph built for `program`."""
        return [self.work(program, work) for work in works]

    def work(self, program: StepProgram, work: Work) -> WorkCost:
        """Return the cost of one work."""
        match work.kind:
            case WorkKind.FORWARD:
                return self.segment(program, _segment(program, work))[0]
            case WorkKind.BACKWARD:
                return self.segment(program, _segment(program, work))[1]
            case WorkKind.JOIN:
                return _NOTHING
            case WorkKind.OPTIMIZER:
                return self._optimizer(program, work.stage)
            case _:
                return _communication(self._plans(program, work))

    def priced_pass(self, program: StepProgram, part: LayerSpec | str) -> PricedPass:
        """Return both passes over a layer, over the "embedding" or over the "head"."""
        key = (part, *_shard_key(program))
        found = self._passes.get(key)
        if found is None:
            passes = self._build_passes(program, part)
            found = self._passes[key] = PricedPass(
                passes=passes,
                forward=self._price(passes.forward),
                backward=self._price(passes.backward),
                recompute=self._price(passes.recompute),
            )
        return found

    def parts(self, program: StepProgram, segment: Segment) -> list[tuple[PricedPass, int]]:
        """Return the passes a segment is made of, in forward order, with their counts."""
        parts = [(self.priced_pass(program, layer), n) for layer, n in segment.layers]
        if segment.embedding:
            parts.insert(0, (self.priced_pass(program, "embedding"), 1))
        if segment.head:
            parts.append((self.priced_pass(program, "head"), 1))
        return parts

    def segment(self, program: StepProgram, segment: Segment) -> tuple[WorkCost, WorkCost]:
        """Return the cost of the forward and of the backward pass over a segment."""
        key = (segment.layers, segment.embedding, segment.head, *_shard_key(program))
        found = self._segments.get(key)
        if found is None:
            forward: dict[Category, float] = {}
            backward: dict[Category, float] = {}
            for priced, count in self.parts(program, segment):
                _add(forward, priced.forward.by_category, count)
                _add(backward, priced.backward.by_category, count)
                again = {Category.RECOMPUTE: priced.recompute.seconds}
                _add(backward, again, count)
            found = self._segments[key] = (_compute(forward), _compute(backward))
        return found

    def _build_passes(self, program: StepProgram, part: LayerSpec | str) -> PassPair:
        hidden, shard = program.model.hidden_size, program.shard
        if isinstance(part, LayerSpec):
            return layer_passes(part, shard)
        if part == "embedding":
            learned = program.model.position is Position.LEARNED
            return embedding_passes(hidden, shard, learned_positions=learned)
        return head_passes(hidden, program.local_vocab, shard)

    def _price(self, block: Block) -> BlockCost:
        self.blocks_priced += 1
        return self.kernels.block(block)

    def _plans(self, program: StepProgram, work: Work) -> tuple[CommPlan, ...]:
        """Return the collectives of a communication work, one after another."""
        numerics = self.stack.numerics
        match work.kind:
            case WorkKind.SEND_FORWARD:
                return self._transfer(program, program.stage_pair(work.stage, work.stage + 1))
            case WorkKind.SEND_BACKWARD:
                return self._transfer(program, program.stage_pair(work.stage, work.stage - 1))
            case WorkKind.TIED_REDUCE:
                pair = program.stage_pair(0, program.layout.pp - 1)
                table = float(program.local_vocab) * program.model.hidden_size
                payload = table * numerics.reduce_bytes
                return (self._plan(Collective.ALL_REDUCE, payload, pair),)
            case WorkKind.REDUCE:
                return self._reduction(program, _segment(program, work).parameters)
            case WorkKind.AVERAGE:
                payload = _segment(program, work).parameters * numerics.parameter_bytes
                return (self._plan(Collective.ALL_REDUCE, payload, program.data_group),)
            case WorkKind.BROADCAST:
                payload = _segment(program, work).parameters * numerics.parameter_bytes
                return (self._plan(Collective.BROADCAST, payload, program.data_group),)
            case _:
                payload = _segment(program, work).parameters * numerics.gather_bytes
                return (self._plan(Collective.ALL_GATHER, payload, program.data_group),)

    def _transfer(self, program: StepProgram, pair: GroupShape) -> tuple[CommPlan, ...]:
        """An activation goes to the next stage, in slices that are then gathered."""
        send = self._plan(Collective.SEND_RECV, program.boundary, pair)
        if not program.regathered:
            return (send,)
        group = program.shard.tensor_group
        return send, self._plan(Collective.ALL_GATHER, program.regathered, group)

    def _reduction(self, program: StepProgram, parameters: float) -> tuple[CommPlan, ...]:
        """Gradients: reduced to a server, all-reduced, or scattered and reduced over replicas."""
        payload = parameters * self.stack.numerics.reduce_bytes
        group, replicas = program.data_group, program.replica_group
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

    def _optimizer(self, program: StepProgram, stage: int) -> WorkCost:
        """The update of the local shard of the states, and the passes over the whole gradient."""
        numerics, job, layout = self.stack.numerics, self.job, program.layout
        parameters = program.stage_parameters(stage)
        gradient = parameters
        updated = parameters
        if layout.zero_stage >= 1:
            updated = parameters / program.data_group.size
        if layout.zero_stage >= ZERO_GRADIENTS:
            gradient = updated
        master = 2 * numerics.master_bytes if numerics.master_bytes else numerics.parameter_bytes
        states = 2 * numerics.state_bytes * job.optimizer.states
        moved = updated * (master + states + numerics.gradient_bytes + numerics.parameter_bytes)
        moved += gradient * numerics.gradient_bytes * numerics.gradient_passes
        seconds = memory_bound_seconds(
            moved,
            MemoryClass.OPTIMIZER,
            gpu=self.profile.accelerator,
            constants=self.profile.constants.memory_bound,
        )
        return WorkCost(
            seconds=seconds * self.kernels.scale,
            by_category={Category.OPTIMIZER: seconds * self.kernels.scale},
        )


def _segment(program: StepProgram, work: Work) -> Segment:
    chunk = program.chunks[work.chunk]
    return chunk.whole if work.segment == WHOLE_CHUNK else chunk.segments[work.segment]


def _shard_key(program: StepProgram) -> _ShardKey:
    """All of a shard that changes a pass, short to hash."""
    shard: Shard = program.shard
    return (
        shard.micro_batch,
        shard.tp,
        shard.cp,
        shard.sequence_parallel,
        shard.recompute,
        shard.tensor_group.per_domain,
        shard.context_group.per_domain,
    )


def _add(totals: dict[Category, float], costs: Mapping[Category, float], count: int) -> None:
    for category, seconds in costs.items():
        totals[category] = totals.get(category, 0.0) + seconds * count


def _compute(totals: dict[Category, float]) -> WorkCost:
    return WorkCost(seconds=sum(totals.values()), by_category=totals)


def _communication(plans: tuple[CommPlan, ...]) -> WorkCost:
    seconds = sum(plan.seconds for plan in plans)
    return WorkCost(seconds=seconds, by_category={}, plans=plans)
