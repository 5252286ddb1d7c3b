"""Durations of all the work of a step, from a step program; each distinct block is priced once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from simulator.cost.between_passes import BetweenPasses, segment_of
from simulator.cost.blocks import BlockCost, KernelCosts
from simulator.cost.collectives.select import CollectiveCosts
from simulator.cost.host_update import split_update
from simulator.cost.maxima import maxima_seconds
from simulator.cost.measured import MeasuredTimes, in_proportion
from simulator.cost.network.network import Network
from simulator.cost.network.routed import limited_costs
from simulator.cost.plan import CommPlan
from simulator.cost.priced import PricedPass, WorkCost
from simulator.cost.section_cache import SectionCache
from simulator.cost.update import update_seconds
from simulator.cost.upkeep import UpkeepTimes
from simulator.hardware.profile import Profile
from simulator.parallel.blocks import (
    Pieces,
    attention_pieces,
    embedding_passes,
    head_passes,
    joined,
    layer_passes,
    mlp_pieces,
)
from simulator.parallel.mtp import mtp_passes
from simulator.parallel.offload import offloaded
from simulator.parallel.program import PassProgram, StepProgram
from simulator.parallel.recompute import in_unit
from simulator.parallel.segments import LayerWork, Section
from simulator.parallel.shard import Shard
from simulator.parallel.split_backward import split_backward
from simulator.parallel.work import Block, PassPair
from simulator.results import Category
from simulator.schedule.tasks import Work, WorkKind
from simulator.workload.calibrated import own_software
from simulator.workload.job import TrainingJob
from simulator.workload.layer import LayerSpec, MoeSpec
from simulator.workload.model import ModelSpec, Position
from simulator.workload.stack import Stack

_NOTHING = WorkCost(seconds=0.0, by_category={})
OVER_CHUNKS = frozenset(
    {
        *(WorkKind.FORWARD, WorkKind.BACKWARD, WorkKind.BACKWARD_INPUT, WorkKind.BACKWARD_WEIGHT),
        *(WorkKind.GATHER, WorkKind.GATHER_CHUNK, WorkKind.REDUCE),
        *(WorkKind.AVERAGE, WorkKind.BROADCAST),
    }
)
"""Work whose cost is that of its chunk, or of a segment of it, on whatever stage that stands."""
_ShardKey = tuple[object, ...]


class StepCosts:
    """Prices step programs of one model, job, stack and machine; owns the caches."""

    def __init__(
        self,
        model: ModelSpec,
        job: TrainingJob,
        stack: Stack,
        profile: Profile,
        *,
        network: Network | None = None,
    ) -> None:
        self.model = model
        self.job = job
        self.stack = stack
        self.profile = profile
        self.network = network
        named = network.algorithms if network is not None else {}
        self.collectives = CollectiveCosts(
            profile,
            apart=True,
            algorithms=named,
            fabric_reduces=network is not None and network.reduces,
        )
        self.kernels = KernelCosts(profile, stack, job.precision, self.collectives, network=network)
        software = own_software(stack, profile.constants.software)
        self._measured = MeasuredTimes(software, job.precision)
        self._upkeep = UpkeepTimes(software, job.precision)
        self.between = BetweenPasses(self.collectives, self._upkeep)
        self.blocks_priced = 0
        self._blocks: dict[_ShardKey, tuple[LayerSpec, tuple[Block, Block]]] = {}
        self._halves_of_layers: dict[_ShardKey, tuple[LayerSpec, tuple[Pieces, Pieces]]] = {}
        self._prices: dict[int, tuple[Block, BlockCost]] = {}
        self._passes: dict[_ShardKey, tuple[LayerWork | str, PricedPass]] = {}
        self._segments = SectionCache[tuple[WorkCost, WorkCost]]()
        self._split = SectionCache[tuple[WorkCost, WorkCost]]()
        self._halves: dict[int, tuple[BlockCost, BlockCost]] = {}

    def durations(self, program: StepProgram, works: tuple[Work, ...]) -> list[WorkCost]:
        """Return the cost of each work of a graph built for `program`, on a network by itself."""
        costs = self.alone(program, works)
        if self.network is None:
            return costs
        return limited_costs(self.network, program, works, costs)

    def alone(self, program: StepProgram, works: tuple[Work, ...]) -> list[WorkCost]:
        """Return the same where nothing behind the NICs holds up what runs between passes."""
        known: dict[tuple[object, ...], WorkCost] = {}
        return [self._once(program, work, known) for work in works]

    def _once(
        self, program: StepProgram, work: Work, known: dict[tuple[object, ...], WorkCost]
    ) -> WorkCost:
        """Return the cost of a work; what passes over like chunks is computed once a program."""
        kind, _, place, segment = work
        if kind not in OVER_CHUNKS:
            return self.work(program, work)
        key = (kind, id(program.chunks[place]), segment)
        found = known.get(key)
        if found is None:
            found = known[key] = self.work(program, work)
        return found

    def work(self, program: StepProgram, work: Work) -> WorkCost:
        """Return the cost of one work, sharing the maxima of delayed scaling at its end."""
        cost = self._own_work(program, work)
        seconds = maxima_seconds(program, work, self.collectives)
        if not seconds:
            return cost
        by_category = dict(cost.by_category)
        _add(by_category, {Category.TENSOR_COMM: seconds}, 1)
        return replace(cost, seconds=cost.seconds + seconds, by_category=by_category)

    def _own_work(self, program: StepProgram, work: Work) -> WorkCost:
        match work.kind:
            case WorkKind.FORWARD:
                return self.segment(program, segment_of(program, work))[0]
            case WorkKind.BACKWARD:
                return self.segment(program, segment_of(program, work))[1]
            case WorkKind.BACKWARD_INPUT:
                return self.split_segment(program, segment_of(program, work))[0]
            case WorkKind.BACKWARD_WEIGHT:
                return self.split_segment(program, segment_of(program, work))[1]
            case WorkKind.JOIN:
                return _NOTHING
            case WorkKind.OPTIMIZER:
                return self._optimizer(program, work.stage)
            case _:
                return _communication(self.between.plans(program, work))

    def priced_pass(self, program: PassProgram, part: LayerWork | str) -> PricedPass:
        """Return both passes over a layer, the "embedding", the "head" or an "mtp" projection."""
        shard = program.shard
        key: _ShardKey
        if isinstance(part, str):
            key = (part, shard.dense_key)
        else:
            key = (id(part), _layer_key(part.layer, shard), shard.recompute_modules)
        found = self._passes.get(key)
        if found is None:
            priced = PricedPass(
                passes=self._build_passes(program, part),
                shard=shard,
                price=self._price,
                measured=self._measured.find(program, part),
            )
            # The part is kept with it, so that its id stays its own.
            found = self._passes[key] = part, priced
        return found[1]

    def parts(self, program: PassProgram, section: Section) -> list[tuple[PricedPass, int]]:
        """Return the passes a section is made of, in forward order, with their counts."""
        parts = [(self.priced_pass(program, layer), n) for layer, n in section.layers]
        if section.embedding:
            parts.insert(0, (self.priced_pass(program, "embedding"), 1))
        if section.head:
            parts += self._head_parts(program, section)
        return parts

    def _head_parts(self, program: PassProgram, section: Section) -> list[tuple[PricedPass, int]]:
        """The head, once for each multi-token-prediction module more, behind what those run."""
        head = self.priced_pass(program, "head")
        if section.mtp is None:
            return [(head, 1)]
        layer, modules = section.mtp
        own = [self.priced_pass(program, part) for part in ("mtp", layer)]
        return [*((part, modules) for part in own), (head, 1 + modules)]

    def seconds(self, program: PassProgram, section: Section) -> tuple[float, float]:
        """Return the seconds of the forward and of the backward pass over a section.

        They are those of `segment` but for the order in which they are added up.
        """
        forward = backward = 0.0
        for priced, count in self.parts(program, section):
            forward += priced.forward.seconds * count
            backward += (priced.backward.seconds + priced.recompute.seconds) * count
        return forward, backward

    def segment(self, program: PassProgram, section: Section) -> tuple[WorkCost, WorkCost]:
        """Return the cost of the forward and of the backward pass over a section."""
        make = partial(self._segment, program, section)
        return self._segments.get(program.shard, section, make)

    def _segment(self, program: PassProgram, section: Section) -> tuple[WorkCost, WorkCost]:
        forward: dict[Category, float] = {}
        backward: dict[Category, float] = {}
        for priced, count in self.parts(program, section):
            _add(forward, priced.forward.by_category, count)
            _add(backward, priced.backward.by_category, count)
            again = {Category.RECOMPUTE: priced.recompute.seconds}
            _add(backward, again, count)
        return _compute(forward), _compute(backward)

    def split_segment(self, program: PassProgram, section: Section) -> tuple[WorkCost, WorkCost]:
        """Return the cost of a section's input gradients, with recomputation, and its weights'."""
        make = partial(self._split_segment, program, section)
        return self._split.get(program.shard, section, make)

    def _split_segment(self, program: PassProgram, section: Section) -> tuple[WorkCost, WorkCost]:
        first: dict[Category, float] = {}
        second: dict[Category, float] = {}
        for priced, count in self.parts(program, section):
            of_input, of_weights = self.split_pass(priced)
            _add(first, of_input.by_category, count)
            _add(first, {Category.RECOMPUTE: priced.recompute.seconds}, count)
            _add(second, of_weights.by_category, count)
        return _compute(first), _compute(second)

    def split_pass(self, priced: PricedPass) -> tuple[BlockCost, BlockCost]:
        """Return the cost of a backward block's two parts."""
        found = self._halves.get(id(priced))
        if found is None:
            halves = [self._price(half) for half in split_backward(priced.passes.backward)]
            if priced.measured is not None:
                halves = in_proportion(halves, priced.measured.backward)
            found = self._halves[id(priced)] = (halves[0], halves[1])
        return found

    def _build_passes(self, program: PassProgram, part: LayerWork | str) -> PassPair:
        hidden, shard = program.model.hidden_size, program.shard
        if isinstance(part, LayerWork):
            blocks = self._layer_blocks(part.layer, shard)
            passes = layer_passes(part.layer, shard, part.recompute, blocks)
            passes = in_unit(passes, part.unit, holds_input=part.holds_input)
            return offloaded(passes, part.window) if part.offload else passes
        if part == "embedding":
            learned = program.model.position is Position.LEARNED
            return embedding_passes(hidden, shard, learned_positions=learned)
        if part == "mtp":
            return mtp_passes(hidden, shard)
        return head_passes(hidden, program.local_vocab, shard)

    def _layer_blocks(self, layer: LayerSpec, shard: Shard) -> tuple[Block, Block]:
        """Return the passes over a layer: the same blocks whatever is recomputed.

        Layouts that differ in their experts alone share all but those.
        """
        dense, own = shard.dense_key, _layer_key(layer, shard)
        attention = self._half("attention", attention_pieces, layer, shard, dense)
        mlp = self._half("mlp", mlp_pieces, layer, shard, own)
        key = ("layer", id(layer), own)
        found = self._blocks.get(key)
        if found is None:
            found = self._blocks[key] = layer, joined(attention, mlp)
        return found[1]

    def _half(
        self,
        name: str,
        pieces: Callable[[LayerSpec, Shard], tuple[Pieces, Pieces]],
        layer: LayerSpec,
        shard: Shard,
        sizes: _ShardKey,
    ) -> tuple[Pieces, Pieces]:
        key = (name, id(layer), sizes)
        found = self._halves_of_layers.get(key)
        if found is None:
            found = self._halves_of_layers[key] = layer, pieces(layer, shard)
        return found[1]

    def _price(self, block: Block) -> BlockCost:
        """Return the cost of a block, which is kept with it, so that its id stays its own."""
        found = self._prices.get(id(block))
        if found is None:
            self.blocks_priced += 1
            found = self._prices[id(block)] = block, self.kernels.block(block)
        return found[1]

    def _optimizer(self, program: StepProgram, stage: int) -> WorkCost:
        """The update of the local shard of the states, and the passes over the whole gradient."""
        modelled = update_seconds(program, stage, self.kernels)
        device = self._upkeep.update_seconds(program, stage, modelled, self.kernels)
        seconds = {Category.OPTIMIZER: device}
        if program.layout.optimizer_offload:
            seconds = split_update(program, stage, device, self.collectives, self.profile)
        return WorkCost(seconds=sum(seconds.values()), by_category=seconds)


def _layer_key(layer: LayerSpec, shard: Shard) -> _ShardKey:
    """Return all that decides the passes over a layer, recomputation apart."""
    return shard.plain_key if isinstance(layer.mlp, MoeSpec) else shard.dense_key


def _add(totals: dict[Category, float], costs: Mapping[Category, float], count: int) -> None:
    for category, seconds in costs.items():
        totals[category] = totals.get(category, 0.0) + seconds * count


def _compute(totals: dict[Category, float]) -> WorkCost:
    return WorkCost(seconds=sum(totals.values()), by_category=totals)


def _communication(plans: tuple[CommPlan, ...]) -> WorkCost:
    seconds = sum(plan.seconds for plan in plans)
    return WorkCost(seconds=seconds, by_category={}, plans=plans)
