"""Which layouts are legal for a model, a job, a stack and a cluster; each refusal has its fix."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from simulator.errors import InputError, Problem
from simulator.parallel.layout import DataParallel, ParallelLayout, ScheduleName
from simulator.parallel.partition import head_cost, partition_layers
from simulator.workload.job import TrainingJob
from simulator.workload.layer import AttentionSpec, LinearSpec, MlpSpec
from simulator.workload.model import ModelSpec
from simulator.workload.stack import AttentionKernel, Stack

_MAX_LISTED = 12
MAX_PASSES = 250_000
"""Forward passes of a step, over all stages; the largest published runs have a tenth of that."""


class Reason(StrEnum):
    """Why a layout was rejected; what the planner counts."""

    WORLD_SIZE = "world size is not tp x cp x dp x pp"
    HEADS = "attention heads do not divide by tp"
    WIDTH = "MLP width does not divide by tp"
    SEQUENCE = "sequence does not divide by cp (and tp)"
    BATCH = "batch does not divide by dp x micro-batch"
    LAYERS = "layers do not divide over the stages"
    SCHEDULE = "schedule does not allow it"
    ZERO = "the stack does not offer this ZeRO stage"
    STACK = "the stack does not offer sequence parallelism or this recomputation"
    DATA_PARALLEL = "data-parallel options contradict each other"
    NOT_MODELLED = "not modelled yet"
    MEMORY = "does not fit in memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule of a layout."""

    reason: Reason
    problem: Problem


def check_layout(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout, where: str = ""
) -> None:
    """Raise `InputError` with every rule that `layout` breaks, each with its legal alternatives."""
    found = [v.problem for v in violations(model, job, stack, layout)]
    if found:
        raise InputError(
            *(Problem(where=where, key=p.key, found=p.found, rule=p.rule, fix=p.fix) for p in found)
        )


def violations(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout
) -> Iterator[Violation]:
    """Yield the rules that a layout breaks, cheap ones first."""
    yield from _tensor(model, layout)
    yield from _sequence(model, job, stack, layout)
    yield from _batch(job, layout)
    yield from _pipeline(model, job, stack, layout)
    yield from _data(stack, layout)
    yield from _offered(stack, layout)


def legal_tensor_sizes(model: ModelSpec, limit: int) -> list[int]:
    """Return the tp up to `limit` that divide heads and widths of every layer.

    Key-value heads are replicated above their number, which must then divide tp.
    """
    return [tp for tp in range(1, limit + 1) if not any(True for _ in _tensor_at(model, tp))]


def _tensor(model: ModelSpec, layout: ParallelLayout) -> Iterator[Violation]:
    for reason, found, rule in _tensor_at(model, layout.tp):
        heads = model.num_attention_heads
        legal = legal_tensor_sizes(model, heads)
        divisors = [tp for tp in range(1, heads + 1) if heads % tp == 0]
        fix = f"tp of {_listed(legal)}"
        if reason is Reason.HEADS and divisors != legal:
            fix += f" (by its {heads} query heads alone: {_listed(divisors)})"
        yield _violation(reason, "layout.tp", found, rule, fix)
    if layout.ep != 1:
        yield _violation(
            Reason.NOT_MODELLED,
            "layout.ep",
            str(layout.ep),
            "a dense model has no experts",
            "ep = 1",
        )


def _tensor_at(model: ModelSpec, tp: int) -> Iterator[tuple[Reason, str, str]]:
    if tp == 1:
        return
    for layer in model.layer_groups():
        match layer.attention:
            case AttentionSpec() as attention:
                heads, kv = attention.num_attention_heads, attention.num_key_value_heads
                if heads % tp:
                    yield Reason.HEADS, f"{heads} heads, tp {tp}", "heads must divide by tp"
                elif kv % tp and tp % kv:
                    rule = "key-value heads must divide by tp, or tp by them"
                    yield Reason.HEADS, f"{kv} key-value heads, tp {tp}", rule
            case LinearSpec() | None:
                pass
        match layer.mlp:
            case MlpSpec() as mlp if mlp.intermediate_size % tp:
                found = f"width {mlp.intermediate_size}, tp {tp}"
                yield Reason.WIDTH, found, "the MLP's width must divide by tp"
            case LinearSpec() as linear if linear.hidden_size % tp:
                found = f"width {linear.hidden_size}, tp {tp}"
                yield Reason.WIDTH, found, "a linear layer's width must divide by tp"
            case _:
                pass


def _sequence(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout
) -> Iterator[Violation]:
    pieces = 2 * layout.cp if layout.cp > 1 else 1
    if job.seq_length % pieces:
        rule = f"sequence length must divide by 2 x cp = {pieces} (balanced causal masks)"
        yield _violation(
            Reason.SEQUENCE, "layout.cp", f"sequence length {job.seq_length}", rule, "smaller cp"
        )
    elif layout.sequence_parallel and (job.seq_length // layout.cp) % layout.tp:
        rule = f"with sequence parallel, seq_length / cp must divide by tp = {layout.tp}"
        yield _violation(
            Reason.SEQUENCE, "layout.tp", f"sequence length {job.seq_length}", rule, "smaller tp"
        )
    if layout.cp > 1 and stack.kernels.attention is AttentionKernel.UNFUSED:
        rule = "context parallelism needs a stack with flash attention"
        yield _violation(Reason.NOT_MODELLED, "layout.cp", str(layout.cp), rule, "cp = 1")
    if layout.cp > 1 and any(
        isinstance(layer.attention, AttentionSpec) and layer.attention.window is not None
        for layer in model.layer_groups()
    ):
        rule = "context parallelism with sliding-window attention is not modelled yet"
        yield _violation(Reason.NOT_MODELLED, "layout.cp", str(layout.cp), rule, "cp = 1")


def _batch(job: TrainingJob, layout: ParallelLayout) -> Iterator[Violation]:
    each = layout.dp * layout.micro_batch_size
    if job.global_batch_size % each:
        below = job.global_batch_size // each * each
        nearest = " or ".join(str(n) for n in (below, below + each) if n)
        yield _violation(
            Reason.BATCH,
            "job.global_batch_size",
            str(job.global_batch_size),
            f"must divide by dp x micro_batch_size = {layout.dp} x {layout.micro_batch_size}",
            nearest,
        )


def _pipeline(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout
) -> Iterator[Violation]:
    interleaves = layout.effective_schedule is ScheduleName.INTERLEAVED
    if interleaves and (layout.vpp == 1 or layout.pp == 1):
        rule = "interleaving needs pp > 1 and vpp > 1"
        yield _violation(
            Reason.SCHEDULE, "layout.vpp", f"pp {layout.pp}, vpp {layout.vpp}", rule, "vpp = 1"
        )
    if layout.effective_schedule is ScheduleName.ONE_F_ONE_B and layout.vpp > 1:
        rule = "1f1b has one chunk a stage"
        yield _violation(
            Reason.SCHEDULE, "layout.schedule", f"vpp {layout.vpp}", rule, "interleaved, or vpp = 1"
        )
    micro_batches = layout.micro_batches(job.global_batch_size)
    if interleaves and micro_batches % layout.pp:
        yield _violation(
            Reason.SCHEDULE,
            "layout.vpp",
            f"{micro_batches} micro-batches a replica",
            f"interleaving needs micro-batches in groups of pp = {layout.pp}",
            "vpp = 1, or another micro_batch_size or dp",
        )
    passes = micro_batches * layout.virtual_stages
    if passes > MAX_PASSES:
        yield _violation(
            Reason.SCHEDULE,
            "layout.micro_batch_size",
            f"{micro_batches} micro-batches x pp {layout.pp} x vpp {layout.vpp} = {passes} passes",
            f"a step of at most {MAX_PASSES} passes is modelled",
            "a larger micro_batch_size or dp, or a smaller global_batch_size",
        )
    try:
        partition_layers(layout, model.num_hidden_layers, stack.partition, head_cost(model))
    except InputError as error:
        yield Violation(reason=Reason.LAYERS, problem=error.problems[0])


def _data(stack: Stack, layout: ParallelLayout) -> Iterator[Violation]:
    offered = stack.zero_stages if layout.pp == 1 else stack.zero_stages_with_pipeline
    if layout.zero_stage not in offered:
        pipeline = " with pp > 1" if layout.pp > 1 else ""
        yield _violation(
            Reason.ZERO,
            "layout.zero_stage",
            str(layout.zero_stage),
            f"{stack.name} does not offer this ZeRO stage{pipeline}",
            "zero_stage of " + ", ".join(map(str, offered)),
        )
    if layout.shard_size is not None and (
        layout.data_ranks % layout.shard_size or layout.zero_stage == 0
    ):
        rule = f"must divide dp x cp = {layout.data_ranks}, and needs zero_stage >= 1"
        yield _violation(
            Reason.DATA_PARALLEL, "layout.shard_size", str(layout.shard_size), rule, "leave it out"
        )
    local = layout.data_parallel is DataParallel.LOCAL_SGD
    if layout.sync_every > 1 and not local:
        rule = "sync_every needs data_parallel = local-sgd"
        yield _violation(
            Reason.DATA_PARALLEL, "layout.sync_every", str(layout.sync_every), rule, "1"
        )
    if layout.data_parallel is not DataParallel.ALL_REDUCE and layout.zero_stage:
        yield _violation(
            Reason.DATA_PARALLEL,
            "layout.zero_stage",
            str(layout.zero_stage),
            f"{layout.data_parallel} keeps whole replicas",
            "zero_stage = 0",
        )


def _listed(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes[:_MAX_LISTED]))


def _offered(stack: Stack, layout: ParallelLayout) -> Iterator[Violation]:
    if layout.sequence_parallel and not stack.sequence_parallel:
        rule = f"{stack.name} has no sequence parallelism"
        yield _violation(Reason.STACK, "layout.sequence_parallel", "true", rule, "false")
    if layout.recompute not in stack.recompute:
        rule = f"{stack.name} does not offer this recomputation"
        yield _violation(
            Reason.STACK,
            "layout.recompute",
            layout.recompute,
            rule,
            "recompute of " + ", ".join(stack.recompute),
        )


def _violation(reason: Reason, key: str, found: str, rule: str, fix: str) -> Violation:
    return Violation(reason=reason, problem=Problem(key=key, found=found, rule=rule, fix=fix))
