"""The step program: the one description of a step, between what is done and how long it takes.

A program says which layers stand on which virtual stage, what passes between stages, and how
gradients and parameters are kept equal. The schedule orders its passes, the cost model times them;
`estimate` and `engine` read the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, inf
from typing import NamedTuple

from simulator.parallel.groups import GroupShape
from simulator.parallel.layout import (
    ZERO_GRADIENTS,
    ZERO_PARAMETERS,
    Axis,
    DataParallel,
    ParallelLayout,
    Placement,
    Recompute,
    RecomputeMethod,
    axis_group,
    group_shape,
    stage_pair,
)
from simulator.parallel.matrices import Ranks, layer_adapters, narrow_weights
from simulator.parallel.numbers import Numbers, numbers_of
from simulator.parallel.partition import head_cost, partition_layers
from simulator.parallel.shard import Shard, make_shard
from simulator.workload.job import Lora, Part, TrainingJob
from simulator.workload.layer import AttentionSpec, LayerSpec
from simulator.workload.layer_order import layer_order
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack

WHOLE_CHUNK = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWork:
    """A layer with what is done about its activations."""

    layer: LayerSpec
    recompute: Recompute = Recompute.NONE
    unit: int = 1
    """With full recomputation: consecutive layers that are recomputed together."""
    holds_input: bool = True
    """Whether it is the first layer of its unit, whose input is what the unit keeps."""
    offload: bool = False
    """Whether what it keeps for the backward pass waits in host memory."""
    window: int = 1
    """Layers that compute while it is copied there, or back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Consecutive layers of a chunk whose gradients (or parameters) travel together."""

    layers: tuple[tuple[LayerWork, int], ...]
    """Distinct layers with how often each occurs."""
    embedding: bool = False
    head: bool = False
    parameters: float
    """On one rank, routed experts apart, after tensor parallelism and before ZeRO."""
    expert_parameters: float = 0.0
    """Of routed experts on one rank, after expert and expert-tensor parallelism."""
    mtp: tuple[LayerWork, int] | None = None
    """The layer of a multi-token-prediction module, and how many there are before the head."""
    frozen: float = 0.0
    """Of `parameters`, those that are not trained; adapters are among `parameters`."""
    frozen_experts: float = 0.0
    """Of `expert_parameters`."""
    narrow: float = 0.0
    """Of `parameters`, weights of linear layers, which may run in 8 or 4 bits."""
    narrow_experts: float = 0.0
    """Of `expert_parameters`."""

    @property
    def trained(self) -> float:
        """Trained parameters, routed experts apart."""
        return self.parameters - self.frozen

    @property
    def trained_experts(self) -> float:
        """Trained parameters of routed experts."""
        return self.expert_parameters - self.frozen_experts

    @property
    def content(self) -> tuple[object, ...]:
        """All that decides what passes over it do, short to hash."""
        return self.layers, self.embedding, self.head, self.mtp


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The part of the model on one virtual stage, whole and cut into segments."""

    whole: Segment
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgram:
    """Everything a step does, without times. Chunks are in model order."""

    model: ModelSpec
    job: TrainingJob
    stack: Stack
    layout: ParallelLayout
    shard: Shard
    chunks: tuple[Chunk, ...]
    micro_batches: int
    local_vocab: int
    """Vocabulary rows of one rank, after padding."""
    boundary: float
    """Bytes of activation that one rank sends to the next stage a micro-batch."""
    regathered: float
    """Bytes of activation that the receiving tp ranks gather from their slices; 0 for none."""
    domain_size: int
    """Consecutive ranks that share a scale-up domain."""
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
        return stage_pair(self.layout, one % pp, other % pp, self.domain_size)

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

    def stage_shard(self, stage: int) -> float:
        """Return the parameters of one rank of a stage that ZeRO leaves it of all of them."""
        own = self.stage_parameters(stage) / self.data_group.size
        return own + self.stage_expert_parameters(stage) / self.expert_data_group.size

    def runs_of_stages(self) -> list[tuple[int, int]]:
        """Return the first and the last of each run of neighbouring stages with equal chunks."""
        runs: list[tuple[int, int]] = []
        before: list[int] = []
        shape = self.layout.pipeline
        for stage in range(self.layout.pp):
            held = [id(self.chunks[place]) for place in shape.places_of(stage)]
            if held == before:
                runs[-1] = (runs[-1][0], stage)
            else:
                runs.append((stage, stage))
            before = held
        return runs

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
    domain_size: int,
    *,
    transposes: bool = False,
) -> StepProgram:
    """Return the step program of a legal layout (see `checks.check_layout`).

    `transposes` is the accelerator's `fp8_needs_transposes`.

    Raises:
        InputError: the layers cannot be spread over the stages.
    """
    shard = make_shard(layout, job, stack, domain_size, transposes=transposes)
    counts = partition_layers(layout, model.num_hidden_layers, stack.partition, head_cost(model))
    vocab = local_vocab(model.vocab_size, job.make_vocab_size_divisible_by, layout.tp)
    parts = _chunks(model, counts, _cut(model, job, stack, layout, vocab))
    copies = layout.pipeline.places // layout.pipeline.way
    data = axis_group(layout, Axis.DATA, domain_size)
    shards = layout.shard_ranks
    stride, replicas = layout.tp * shards, data.size // shards
    expert_stride = layout.ep * layout.expert_tp
    expert_shards = layout.expert_data_ranks // replicas
    activation = shard.element * shard.tokens * model.hidden_size
    sliced = stack.overlap.pipeline_slices and layout.tp > 1
    sharded = data if shards == data.size else group_shape(shards, layout.tp, domain_size)
    experts = group_shape(expert_shards, expert_stride, domain_size)
    return StepProgram(
        model=model,
        job=job,
        stack=stack,
        layout=layout,
        shard=shard,
        chunks=parts * copies,
        micro_batches=layout.micro_batches(job.global_batch_size),
        local_vocab=vocab,
        boundary=activation / (layout.tp if sliced or shard.sequence_parallel else 1),
        regathered=activation if sliced and not shard.sequence_parallel else 0.0,
        domain_size=domain_size,
        numbers=numbers_of(job, stack, layout, transposes=transposes),
        data_group=_with_copies(layout, sharded, domain_size),
        replica_group=group_shape(replicas, stride, domain_size),
        expert_data_group=_with_copies(layout, experts, domain_size),
        expert_replica_group=group_shape(replicas, expert_stride * expert_shards, domain_size),
    )


def _with_copies(layout: ParallelLayout, group: GroupShape, domain_size: int) -> GroupShape:
    """Return a data group with the ranks that hold the other copy of its parameters (DualPipe).

    They stand on the stage that mirrors this one; first and last, which are furthest apart, decide
    whether the two share a scale-up domain.
    """
    if layout.pipeline.placement is not Placement.BIDIRECTIONAL:
        return group
    ends = stage_pair(layout, 0, layout.pp - 1, domain_size)
    return GroupShape(size=group.size * ends.size, per_domain=group.per_domain * ends.per_domain)


def local_vocab(vocab_size: int, divisible_by: int, tp: int) -> int:
    """Return the vocabulary rows of one tp rank after padding.

    >>> local_vocab(50257, 128, 8)
    6400
    """
    multiple = divisible_by * tp
    return ceil(vocab_size / multiple) * multiple // tp


def layer_parameters(layer: LayerSpec, tp: int) -> float:
    """Return the parameters of one layer on one of `tp` ranks, routed experts apart.

    Key-value heads are replicated where there are fewer of them than tp.
    """
    parameters = layer.sharded_parameters / tp + layer.replicated_parameters
    match layer.attention:
        case AttentionSpec() as attention if attention.num_key_value_heads < tp:
            kept = 1 / attention.num_key_value_heads - 1 / tp
            return parameters + attention.key_value_parameters * kept
        case _:
            return parameters


class _Cut(NamedTuple):
    """What decides how layers are cut, apart from the model and the layers of each chunk."""

    tp: int
    vocab: int
    shares_table: bool
    """Whether the head finds its table in the embedding of its own stage."""
    bucket: float
    """Parameters of a bucket: infinite for one segment a chunk, 0 for one a layer."""
    ranks: Ranks
    lora: Lora | None
    frozen: frozenset[Part]
    """Parts that are not trained; all beside adapters."""
    expert_ranks: int
    """Ranks that share the routed experts: ep x etp."""
    mtp_table: bool
    """Whether multi-token prediction needs an embedding that its stage does not hold yet."""
    recompute: Recompute
    recomputed: int
    """Layers of a chunk, from the first, that fully recompute."""
    unit: int
    """Layers that fully recompute together."""
    offloaded: int
    """Layers of a chunk, from the first, whose activations wait in host memory."""


def _cut(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout, vocab: int
) -> _Cut:
    """Cut a chunk into buckets of the stack's size, or into FSDP units of one layer."""
    twice = layout.pipeline.placement is Placement.BIDIRECTIONAL
    copies = max(layout.data_ranks, layout.expert_data_ranks if model.moe is not None else 1)
    if copies == 1 or twice or layout.data_parallel is not DataParallel.ALL_REDUCE:
        bucket = inf
    elif layout.zero_stage == ZERO_PARAMETERS:
        bucket = 0.0
    elif layout.zero_stage == ZERO_GRADIENTS or stack.overlap.gradient_reduce:
        bucket = float(stack.bucket_parameters)
    else:
        bucket = inf
    comes_back = layout.pp == 1 or layout.pipeline.placement is not Placement.LOOP
    shares_table = model.tie_word_embeddings and comes_back
    number = layout.recompute_num_layers
    uniform = layout.recompute_method is RecomputeMethod.UNIFORM
    return _Cut(
        tp=layout.tp,
        vocab=vocab,
        shares_table=shares_table,
        bucket=bucket,
        ranks=Ranks(tp=layout.tp, ep=layout.ep, expert_tp=layout.expert_tp),
        lora=job.lora,
        frozen=frozenset(part for part in Part if not job.trains(part)),
        expert_ranks=layout.ep * layout.expert_tp,
        mtp_table=not comes_back and not model.tie_word_embeddings,
        recompute=layout.recompute,
        recomputed=model.num_hidden_layers if uniform or not number else number,
        unit=number if uniform and number else 1,
        offloaded=layout.offload_layers,
    )


@lru_cache(maxsize=8192)
def _chunks(model: ModelSpec, counts: tuple[int, ...], cut: _Cut) -> tuple[Chunk, ...]:
    """Return the chunks in model order; equal ones are one object, and are so across layouts."""
    _, order = layer_order(model)
    layers, last = model.layers(), len(counts) - 1
    shared: dict[tuple[object, ...], Chunk] = {}
    chunks, start = [], 0
    for index, count in enumerate(counts):
        stop, ends = start + count, (index == 0, index == last)
        key = (*ends, order[start:stop])
        if key not in shared:
            shared[key] = _chunk(model, layers[start:stop], ends, cut)
        chunks.append(shared[key])
        start = stop
    return tuple(chunks)


def _chunk(
    model: ModelSpec, layers: tuple[LayerSpec, ...], ends: tuple[bool, bool], cut: _Cut
) -> Chunk:
    works = tuple(_work(layer, n, len(layers), cut) for n, layer in enumerate(layers))
    whole = _segment(model, works, ends, cut)
    held = whole.trained + whole.trained_experts
    buckets = ceil(held / cut.bucket) if cut.bucket else len(layers)
    pieces = min(len(layers), buckets)
    if pieces <= 1:
        return Chunk(whole=whole, segments=(whole,))
    bounds = [len(layers) * i // pieces for i in range(pieces + 1)]
    segments = (
        _segment(
            model,
            works[bounds[i] : bounds[i + 1]],
            (ends[0] and i == 0, ends[1] and i == pieces - 1),
            cut,
        )
        for i in range(pieces)
    )
    return Chunk(whole=whole, segments=tuple(segments))


def _work(layer: LayerSpec, number: int, count: int, cut: _Cut) -> LayerWork:
    """Return what is done about the activations of layer `number`, from 0, of a chunk's `count`."""
    full = cut.recompute is Recompute.FULL
    start = number - number % cut.unit
    layers, more = divmod(count, cut.offloaded) if cut.offloaded else (1, 0)
    return LayerWork(
        layer=layer,
        recompute=Recompute.NONE if full and number >= cut.recomputed else cut.recompute,
        unit=min(cut.unit, count - start),
        holds_input=number == start,
        offload=number < cut.offloaded,
        window=max(1, layers + (number < more)) if number < cut.offloaded else 1,
    )


def _segment(
    model: ModelSpec, works: tuple[LayerWork, ...], ends: tuple[bool, bool], cut: _Cut
) -> Segment:
    counts: dict[LayerWork, int] = {}
    for work in works:
        counts[work] = counts.get(work, 0) + 1
    parameters = sum(layer_parameters(work.layer, cut.tp) * n for work, n in counts.items())
    experts = sum(work.layer.expert_parameters * n for work, n in counts.items())
    parameters += sum(layer_adapters(w.layer, cut.ranks, cut.lora) * n for w, n in counts.items())
    frozen = sum(_frozen_parameters(work.layer, cut) * n for work, n in counts.items())
    narrow = sum(narrow_weights(work.layer, cut.ranks) * n for work, n in counts.items())
    routed = sum(narrow_weights(w.layer, cut.ranks, routed=True) * n for w, n in counts.items())
    embedding, head = ends
    table = float(cut.vocab) * model.hidden_size
    if embedding:
        own = model.embedding_parameters - model.vocab_size * model.hidden_size
        parameters += table + own
        frozen += (table + own) * (Part.EMBEDDING in cut.frozen)
    if head:
        output = (0.0 if cut.shares_table else table) + cut.vocab * model.lm_head_bias
        parameters += model.final_norm_parameters
        parameters += output
        frozen += output * (Part.HEAD in cut.frozen)
        frozen += model.final_norm_parameters * (cut.lora is not None)
    mtp = _mtp(model, cut) if head else None
    if mtp is not None:
        layer, modules = mtp[0].layer, mtp[1]
        projection = model.mtp_projection_parameters / cut.tp
        parameters += modules * mtp_parameters(model, cut.tp) + cut.mtp_table * table
        parameters += modules * layer_adapters(layer, cut.ranks, cut.lora)
        experts += modules * layer.expert_parameters
        frozen += modules * _frozen_parameters(layer, cut)
        frozen += modules * projection * (Part.MLP in cut.frozen)
        frozen += modules * model.mtp_norm_parameters * (cut.lora is not None)
        frozen += cut.mtp_table * table * (Part.EMBEDDING in cut.frozen)
        narrow += modules * (narrow_weights(layer, cut.ranks) + projection)
        routed += modules * narrow_weights(layer, cut.ranks, routed=True)
    return Segment(
        layers=tuple(counts.items()),
        embedding=embedding,
        head=head,
        parameters=parameters,
        expert_parameters=experts / cut.expert_ranks,
        frozen=frozen,
        frozen_experts=experts / cut.expert_ranks if Part.EXPERTS in cut.frozen else 0.0,
        narrow=narrow,
        narrow_experts=routed,
        mtp=mtp,
    )


def _frozen_parameters(layer: LayerSpec, cut: _Cut) -> float:
    """Return the parameters of a layer that are not trained, adapters and experts apart.

    Beside adapters all are frozen; a frozen part is a block, not the norm in front of it.
    """
    whole = layer_parameters(layer, cut.tp)
    if cut.lora is not None or not cut.frozen:
        return whole if cut.lora is not None else 0.0
    attention = None if Part.ATTENTION in cut.frozen else layer.attention
    mlp = None if Part.MLP in cut.frozen else layer.mlp
    return whole - layer_parameters(replace(layer, attention=attention, mlp=mlp), cut.tp)


def _mtp(model: ModelSpec, cut: _Cut) -> tuple[LayerWork, int] | None:
    """Return the layer of the multi-token-prediction modules, and how many there are."""
    if not model.num_nextn_predict_layers:
        return None
    work = LayerWork(layer=model.mtp_layer(), recompute=cut.recompute)
    return work, model.num_nextn_predict_layers


def mtp_parameters(model: ModelSpec, tp: int) -> float:
    """Return the parameters of a multi-token-prediction module on one of `tp` ranks.

    Routed experts apart, and without the embedding and the head that it shares. The projection is
    column parallel.
    """
    own = model.mtp_projection_parameters / tp + model.mtp_norm_parameters
    return layer_parameters(model.mtp_layer(), tp) + own
