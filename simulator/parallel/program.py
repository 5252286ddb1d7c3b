"""The step program: the one description of a step, between what is done and how long it takes.

A program says which layers stand on which virtual stage, what passes between stages, and how
gradients and parameters are kept equal. The schedule orders its passes, the cost model times them;
`estimate` and `engine` read the result.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    axis_group,
    group_shape,
    stage_pair,
)
from simulator.parallel.partition import head_cost, partition_layers
from simulator.parallel.shard import Shard, make_shard
from simulator.workload.job import TrainingJob
from simulator.workload.layer import AttentionSpec, LayerSpec
from simulator.workload.layer_order import layer_order
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack

WHOLE_CHUNK = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Consecutive layers of a chunk whose gradients (or parameters) travel together."""

    layers: tuple[tuple[LayerSpec, int], ...]
    """Distinct layers with how often each occurs."""
    embedding: bool = False
    head: bool = False
    parameters: float
    """On one rank, after tensor parallelism and before ZeRO."""


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
    data_group: GroupShape
    """Ranks over which gradients are reduced (ZeRO shards, in HSDP)."""
    replica_group: GroupShape
    """Ranks over which HSDP's shards are reduced once more; size 1 without HSDP."""

    def stage_chunks(self, stage: int) -> tuple[Chunk, ...]:
        """Return the chunks of one pipeline rank, first to last."""
        return self.chunks[stage :: self.layout.pp]

    def stage_pair(self, one: int, other: int) -> GroupShape:
        """Return the pair of ranks that two pipeline stages (modulo pp) send between."""
        pp = self.layout.pp
        return stage_pair(self.layout, one % pp, other % pp, self.domain_size)

    def stage_parameters(self, stage: int) -> float:
        """Return the parameters of one rank of a stage, before ZeRO."""
        return sum(chunk.whole.parameters for chunk in self.stage_chunks(stage))

    def runs_of_stages(self) -> list[tuple[int, int]]:
        """Return the first and the last of each run of neighbouring stages with equal chunks."""
        runs: list[tuple[int, int]] = []
        before: list[int] = []
        for stage in range(self.layout.pp):
            held = [id(chunk) for chunk in self.stage_chunks(stage)]
            if held == before:
                runs[-1] = (runs[-1][0], stage)
            else:
                runs.append((stage, stage))
            before = held
        return runs

    @property
    def shards_parameters(self) -> bool:
        """Whether parameters are gathered for every pass (ZeRO-3, FSDP)."""
        return self.layout.zero_stage == ZERO_PARAMETERS and self.data_group.size > 1

    @property
    def ties_stages(self) -> bool:
        """Whether first and last stage hold the same embedding and must reduce its gradient."""
        return self.model.tie_word_embeddings and self.layout.pp > 1


def build_program(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout, domain_size: int
) -> StepProgram:
    """Return the step program of a legal layout (see `checks.check_layout`).

    Raises:
        InputError: the layers cannot be spread over the stages.
    """
    shard = make_shard(layout, job, stack, domain_size)
    counts = partition_layers(layout, model.num_hidden_layers, stack.partition, head_cost(model))
    vocab = local_vocab(model.vocab_size, job.make_vocab_size_divisible_by, layout.tp)
    chunks = _chunks(model, counts, _cut(model, stack, layout, vocab))
    data = axis_group(layout, Axis.DATA, domain_size)
    shards = layout.shard_ranks
    stride = layout.tp * shards
    activation = shard.element * shard.tokens * model.hidden_size
    sliced = stack.overlap.pipeline_slices and layout.tp > 1
    return StepProgram(
        model=model,
        job=job,
        stack=stack,
        layout=layout,
        shard=shard,
        chunks=chunks,
        micro_batches=layout.micro_batches(job.global_batch_size),
        local_vocab=vocab,
        boundary=activation / (layout.tp if sliced or shard.sequence_parallel else 1),
        regathered=activation if sliced and not shard.sequence_parallel else 0.0,
        domain_size=domain_size,
        data_group=data if shards == data.size else group_shape(shards, layout.tp, domain_size),
        replica_group=group_shape(data.size // shards, stride, domain_size),
    )


def local_vocab(vocab_size: int, divisible_by: int, tp: int) -> int:
    """Return the vocabulary rows of one tp rank after padding.

    >>> local_vocab(50257, 128, 8)
    6400
    """
    multiple = divisible_by * tp
    return ceil(vocab_size / multiple) * multiple // tp


def layer_parameters(layer: LayerSpec, tp: int) -> float:
    """Return the parameters of one layer on one of `tp` ranks.

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


def _cut(model: ModelSpec, stack: Stack, layout: ParallelLayout, vocab: int) -> _Cut:
    """Cut a chunk into buckets of the stack's size, or into FSDP units of one layer."""
    if layout.data_ranks == 1 or layout.data_parallel is not DataParallel.ALL_REDUCE:
        bucket = inf
    elif layout.zero_stage == ZERO_PARAMETERS:
        bucket = 0.0
    elif layout.zero_stage == ZERO_GRADIENTS or stack.overlap.gradient_reduce:
        bucket = float(stack.bucket_parameters)
    else:
        bucket = inf
    shares_table = model.tie_word_embeddings and layout.pp == 1
    return _Cut(tp=layout.tp, vocab=vocab, shares_table=shares_table, bucket=bucket)


@lru_cache(maxsize=1024)
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
    whole = _segment(model, layers, ends, cut)
    buckets = ceil(whole.parameters / cut.bucket) if cut.bucket else len(layers)
    pieces = min(len(layers), buckets)
    if pieces <= 1:
        return Chunk(whole=whole, segments=(whole,))
    bounds = [len(layers) * i // pieces for i in range(pieces + 1)]
    segments = (
        _segment(
            model,
            layers[bounds[i] : bounds[i + 1]],
            (ends[0] and i == 0, ends[1] and i == pieces - 1),
            cut,
        )
        for i in range(pieces)
    )
    return Chunk(whole=whole, segments=tuple(segments))


def _segment(
    model: ModelSpec, layers: tuple[LayerSpec, ...], ends: tuple[bool, bool], cut: _Cut
) -> Segment:
    counts: dict[LayerSpec, int] = {}
    for layer in layers:
        counts[layer] = counts.get(layer, 0) + 1
    parameters = sum(layer_parameters(layer, cut.tp) * n for layer, n in counts.items())
    embedding, head = ends
    table = float(cut.vocab) * model.hidden_size
    if embedding:
        own = model.embedding_parameters - model.vocab_size * model.hidden_size
        parameters += table + own
    if head:
        parameters += model.final_norm_parameters
        parameters += (0.0 if cut.shares_table else table) + cut.vocab * model.lm_head_bias
    return Segment(
        layers=tuple(counts.items()), embedding=embedding, head=head, parameters=parameters
    )
