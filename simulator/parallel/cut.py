"""What a layout decides about the way a model is cut into chunks and segments."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from simulator.parallel.layout import (
    ZERO_GRADIENTS,
    ZERO_PARAMETERS,
    DataParallel,
    ParallelLayout,
    Placement,
    Recompute,
    RecomputeMethod,
)
from simulator.parallel.matrices import Ranks
from simulator.workload.job import Lora, Part, TrainingJob
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack


class Saver(NamedTuple):
    """What a layout decides about the activations of a chunk's layers."""

    recompute: Recompute
    recomputed: int
    """Layers of a chunk, from the first, that fully recompute."""
    unit: int
    """Layers that fully recompute together."""
    offloaded: int
    """Layers of a chunk, from the first, whose activations wait in host memory."""


class Cut(NamedTuple):
    """What decides how layers are cut, apart from the model and the layers of each chunk."""

    tp: int
    vocab: int
    shares_table: bool
    """Whether the head finds its table in the embedding of its own stage."""
    bucket: float
    """Parameters of a bucket: infinite for one segment a chunk, 0 for one a layer."""
    first_bucket: float | None
    """Parameters at which the first bucket closes where embedding and head are parts of their own;
    None where they go with the first and the last layer."""
    ranks: Ranks
    lora: Lora | None
    frozen: frozenset[Part]
    """Parts that are not trained; all beside adapters."""
    expert_ranks: int
    """Ranks that share the routed experts: ep x etp."""
    mtp_table: bool
    """Whether multi-token prediction needs an embedding that its stage does not hold yet."""
    saver: Saver


def saver_of(model: ModelSpec, layout: ParallelLayout) -> Saver:
    """Return what is done about activations; a number counts where it is not all layers."""
    number = layout.recompute_num_layers
    uniform = layout.recompute_method is RecomputeMethod.UNIFORM
    return Saver(
        recompute=layout.recompute,
        recomputed=model.num_hidden_layers if uniform or not number else number,
        unit=number if uniform and number else 1,
        offloaded=layout.offload_layers,
    )


def cut_of(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout, vocab: int
) -> Cut:
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
    return Cut(
        tp=layout.tp,
        vocab=vocab,
        shares_table=shares_table,
        bucket=bucket,
        first_bucket=_first_bucket(stack, bucket),
        ranks=Ranks(tp=layout.tp, ep=layout.ep, expert_tp=layout.expert_tp),
        lora=job.lora,
        frozen=frozenset(part for part in Part if not job.trains(part)),
        expert_ranks=layout.ep * layout.expert_tp,
        mtp_table=not comes_back and not model.tie_word_embeddings,
        saver=saver_of(model, layout),
    )


def _first_bucket(stack: Stack, bucket: float) -> float | None:
    if stack.first_bucket_parameters is None or bucket == inf:
        return None
    return min(bucket, float(stack.first_bucket_parameters))
