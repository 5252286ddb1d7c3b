"""The step program: the one description of a step, between what is done and how long it takes.

A program says which layers stand on which virtual stage, what passes between stages, and how
gradients and parameters are kept equal. The schedule orders its passes, the cost model times them;
`estimate` and `engine` read the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from simulator.parallel.chunks import Cutter, local_vocab
from simulator.parallel.cut import cut_of, saver_of
from simulator.parallel.data_groups import DataGroups, data_groups
from simulator.parallel.domains import Domains
from simulator.parallel.groups import GroupShape
from simulator.parallel.layout import (
    ZERO_PARAMETERS,
    ParallelLayout,
    Placement,
    stage_pair,
)
from simulator.parallel.numbers import Numbers, numbers_of
from simulator.parallel.partition import head_cost, partition_layers
from simulator.parallel.sections import Sections
from simulator.parallel.segments import Chunk
from simulator.parallel.shard import Shard, casts_in_each_pass, make_shard
from simulator.workload.job import Part, TrainingJob
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class PassProgram:
    """What the passes of a step run, without the parameters that they run on."""

    model: ModelSpec
    layout: ParallelLayout
    shard: Shard
    sections: Sections
    """In model order."""
    micro_batches: int
    local_vocab: int
    """Vocabulary rows of one rank, after padding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgram(PassProgram):
    """Everything a step does, without times. Chunks are in model order."""

    job: TrainingJob
    stack: Stack
    chunks: tuple[Chunk, ...]
    boundary: float
    """Bytes of activation that one rank sends to the next stage a micro-batch."""
    regathered: float
    """Bytes of activation that the receiving tp ranks gather from their slices; 0 for none."""
    domains: Domains
    """Which ranks share a scale-up domain."""
    numbers: Numbers
    """Bytes of a parameter, its gradient and its states."""
    data_group: GroupShape
    """Ranks over which gradients are reduced (ZeRO shards, in HSDP)."""
    replica_group: GroupShape
    """Ranks over which HSDP's shards are reduced once more; size 1 without HSDP."""
    expert_data_group: GroupShape
    """Ranks over which the gradients of routed experts are reduced (ZeRO shards, in HSDP)."""
    expert_replica_group: GroupShape
    """Ranks over which HSDP's shards of routed experts are reduced once more."""

    def stage_chunks(self, stage: int) -> tuple[Chunk, ...]:
        """Return the chunks of one pipeline rank, first to last."""
        return tuple(self.chunks[place] for place in self.layout.pipeline.places_of(stage))

    def stage_pair(self, one: int, other: int) -> GroupShape:
        """Return the pair of ranks that two pipeline stages (modulo pp) send between."""
        pp = self.layout.pp
        return stage_pair(self.layout, one % pp, other % pp, self.domains)

    def place_pair(self, one: int, other: int) -> GroupShape:
        """Return the pair of ranks that two places of the pipeline send between."""
        shape = self.layout.pipeline
        return self.stage_pair(shape.stage(one), shape.stage(other))

    def stage_parameters(self, stage: int) -> float:
        """Return the parameters of one rank of a stage, routed experts apart, before ZeRO."""
        return sum(chunk.whole.parameters for chunk in self.stage_chunks(stage))

    def stage_expert_parameters(self, stage: int) -> float:
        """Return the parameters of the routed experts of one rank of a stage, before ZeRO."""
        return sum(chunk.whole.expert_parameters for chunk in self.stage_chunks(stage))

    def runs_of_stages(self) -> tuple[tuple[int, int], ...]:
        """Return the first and the last of each run of neighbouring stages with equal chunks."""
        return tuple((run.first, run.last) for run in self.sections.runs)

    @property
    def has_copies(self) -> bool:
        """Whether any parameter has copies on other ranks, whose gradients must be reduced."""
        return self.shards or self.replica_group.size > 1

    @property
    def shards(self) -> bool:
        """Whether ZeRO has ranks to shard over: the data ranks, or those of the experts.

        Experts that tensor parallelism does not cut (etp < tp) have copies on its ranks.
        """
        return max(self.data_group.size, self._expert_shards) > 1

    @property
    def _expert_shards(self) -> int:
        return self.expert_data_group.size if self.model.moe is not None else 1

    @property
    def shards_parameters(self) -> bool:
        """Whether parameters are gathered for every pass (ZeRO-3, FSDP)."""
        return self.layout.zero_stage == ZERO_PARAMETERS and self.shards

    @property
    def ties_stages(self) -> bool:
        """Whether first and last stage hold the same embedding and must reduce its gradient.

        The last one needs it for tied logits, or for the inputs of multi-token prediction. Where
        the pipeline comes back to its first stage, that one holds both ends.
        """
        loops = self.layout.pipeline.placement is Placement.LOOP
        shared = self.model.tie_word_embeddings or self.model.num_nextn_predict_layers > 0
        shared = shared and self.job.trains(Part.EMBEDDING)
        return shared and self.layout.pp > 1 and loops


def build_program(
    model: ModelSpec,
    job: TrainingJob,
    stack: Stack,
    layout: ParallelLayout,
    domains: Domains,
    *,
    transposes: bool = False,
) -> StepProgram:
    """Return the step program of a legal layout (see `checks.check_layout`).

    `transposes` is the accelerator's `fp8_needs_transposes`.

    Raises:
        InputError: the layers cannot be spread over the stages.
    """
    return Programs(model, job, stack, domains, transposes=transposes).of(layout)


class Programs:
    """Builds the step programs of one model, job, stack and machine; owns what they share.

    Equal shards and chunks of its programs are one object.
    """

    def __init__(
        self,
        model: ModelSpec,
        job: TrainingJob,
        stack: Stack,
        domains: Domains,
        *,
        transposes: bool = False,
    ) -> None:
        self.model, self.job, self.stack = model, job, stack
        self.domains, self.transposes = domains, transposes
        self._cutter = Cutter(model)
        self._shards: dict[tuple[object, ...], Shard] = {}
        self._chunks: dict[tuple[object, ...], tuple[Chunk, ...]] = {}
        self._sections: dict[tuple[object, ...], Sections] = {}
        self._groups: dict[tuple[object, ...], DataGroups] = {}
        self._numbers: dict[bool, Numbers] = {}

    def passes_of(self, layout: ParallelLayout) -> PassProgram:
        """Return what the passes of a legal layout run. Raises as `build_program`."""
        return PassProgram(
            model=self.model,
            layout=layout,
            shard=self._shard(layout),
            sections=self._sections_of(layout),
            micro_batches=layout.micro_batches(self.job.global_batch_size),
            local_vocab=self._vocab(layout.tp),
        )

    def of(self, layout: ParallelLayout) -> StepProgram:
        """Return the program of a legal layout. Raises as `build_program`."""
        model, job, stack = self.model, self.job, self.stack
        shard, groups = self._shard(layout), self._groups_of(layout)
        vocab = self._vocab(layout.tp)
        activation = shard.element * shard.tokens * model.hidden_size
        sliced = stack.overlap.pipeline_slices and layout.tp > 1
        return StepProgram(
            model=model,
            job=job,
            stack=stack,
            layout=layout,
            shard=shard,
            sections=self._sections_of(layout),
            chunks=self._chunks_of(layout, vocab),
            micro_batches=layout.micro_batches(job.global_batch_size),
            local_vocab=vocab,
            boundary=activation / (layout.tp if sliced or shard.sequence_parallel else 1),
            regathered=activation if sliced and not shard.sequence_parallel else 0.0,
            domains=self.domains,
            numbers=self._numbers_of(layout),
            data_group=groups.data,
            replica_group=groups.replica,
            expert_data_group=groups.expert_data,
            expert_replica_group=groups.expert_replica,
        )

    def _shard(self, layout: ParallelLayout) -> Shard:
        key = (
            layout.micro_batch_size,
            layout.tp,
            layout.cp,
            layout.ep,
            layout.etp,
            layout.sequence_parallel,
            layout.recompute_modules,
            layout.cp_comm_type,
            layout.cp_inner,
            casts_in_each_pass(layout, self.job),
        )
        found = self._shards.get(key)
        if found is None:
            made = make_shard(
                layout, self.job, self.stack, self.domains, transposes=self.transposes
            )
            found = self._shards[key] = made
        return found

    def _chunks_of(self, layout: ParallelLayout, vocab: int) -> tuple[Chunk, ...]:
        """Return the chunks of all places; those of DualPipe's way back are those of the way."""
        shape = layout.pipeline
        key = (
            *(shape.pp, shape.vpp, shape.placement, layout.layers_per_stage),
            *(layout.tp, layout.ep, layout.expert_tp, layout.data_ranks == 1),
            *(layout.expert_data_ranks == 1, layout.data_parallel, layout.zero_stage),
            *(layout.recompute, layout.recompute_method, layout.recompute_num_layers),
            layout.offload_layers,
        )
        found = self._chunks.get(key)
        if found is None:
            cut = cut_of(self.model, self.job, self.stack, layout, vocab)
            found = self._cutter.chunks(self._counts(layout), cut)
            found = self._chunks[key] = found * (shape.places // shape.way)
        return found

    def _sections_of(self, layout: ParallelLayout) -> Sections:
        """Return the sections of all places; those of DualPipe's way back are those of the way."""
        shape = layout.pipeline
        key = (
            *(layout.pp, layout.vpp, shape.placement, layout.layers_per_stage),
            *(layout.recompute, layout.recompute_method, layout.recompute_num_layers),
            layout.offload_layers,
        )
        found = self._sections.get(key)
        if found is None:
            saver = saver_of(self.model, layout)
            places = self._cutter.sections(self._counts(layout), saver)
            places *= shape.places // shape.way
            found = self._sections[key] = Sections(shape=shape, of_places=places)
        return found

    def _counts(self, layout: ParallelLayout) -> tuple[int, ...]:
        """Return the layers of each virtual stage of one way."""
        model, rule = self.model, self.stack.partition
        return partition_layers(layout, model.num_hidden_layers, rule, head_cost(model))

    def _vocab(self, tp: int) -> int:
        return local_vocab(self.model.vocab_size, self.job.make_vocab_size_divisible_by, tp)

    def _groups_of(self, layout: ParallelLayout) -> DataGroups:
        sizes = (layout.tp, layout.cp, layout.dp, layout.ep, layout.etp, layout.shard_size)
        key = (*sizes, layout.pp, layout.pipeline.placement)
        found = self._groups.get(key)
        if found is None:
            found = self._groups[key] = data_groups(layout, self.domains)
        return found

    def _numbers_of(self, layout: ParallelLayout) -> Numbers:
        casts = casts_in_each_pass(layout, self.job)
        found = self._numbers.get(casts)
        if found is None:
            made = numbers_of(self.job, self.stack, layout, transposes=self.transposes)
            found = self._numbers[casts] = made
        return found
