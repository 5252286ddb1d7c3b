"""Which layouts are legal for a model, a job, a stack and a cluster; each refusal has its fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from simulator.errors import InputError, Problem
from simulator.parallel.context_checks import context_problems
from simulator.parallel.expert_checks import EXPERT_FIELDS, expert_problems
from simulator.parallel.layout import DataParallel, ParallelLayout
from simulator.parallel.number_checks import NUMBER_FIELDS, number_problems
from simulator.parallel.partition import head_cost, partition_layers
from simulator.parallel.reasons import Reason, Violation, listed
from simulator.parallel.saver_checks import RECOMPUTE_FIELDS, offload_problems, recompute_problems
from simulator.parallel.schedule_checks import (
    COPIES_FIELDS,
    SCHEDULE_FIELDS,
    copies_problems,
    schedule_problems,
)
from simulator.workload.job import TrainingJob
from simulator.workload.layer import AttentionSpec, LinearSpec, MlaSpec, MlpSpec, MoeSpec
from simulator.workload.model import ModelSpec
from simulator.workload.stack import Stack
from simulator.workload.stack_choices import AttentionKernel

__all__ = [
    "MAX_PASSES",
    "RULES",
    "Asked",
    "Reason",
    "Rule",
    "Violation",
    "check_layout",
    "legal_tensor_sizes",
    "violations",
]

MAX_PASSES = 250_000
"""Forward passes of a step, over all stages; the largest published runs have a tenth of that."""


def check_layout(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout, where: str = ""
) -> None:
    """Raise `InputError` with every rule that `layout` breaks, each with its legal alternatives."""
    found = [v.problem for v in violations(model, job, stack, layout)]
    if found:
        raise InputError(
            *(Problem(where=where, key=p.key, found=p.found, rule=p.rule, fix=p.fix) for p in found)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A layout, and what it is to be legal for."""

    model: ModelSpec
    job: TrainingJob
    stack: Stack
    layout: ParallelLayout


class Rule(NamedTuple):
    """What is tested together, and all that it asks a layout."""

    reads: tuple[str, ...]
    """Fields of the layout that decide it: equal values give equal verdicts. The planner settles
    whole branches by them, so that a field left out here makes it list illegal layouts."""
    broken: Callable[[Asked], Iterator[Violation]]


RULES = (
    Rule(("tp",), lambda asked: _tensor(asked.model, asked.layout)),
    Rule(EXPERT_FIELDS, lambda asked: _of(Reason.EXPERTS, expert_problems, asked)),
    Rule(
        ("tp", "cp", "cp_comm_type", "cp_inner", "sequence_parallel"),
        lambda asked: _sequence(asked.model, asked.job, asked.stack, asked.layout),
    ),
    Rule(("dp", "micro_batch_size"), lambda asked: _batch(asked.job, asked.layout)),
    Rule(SCHEDULE_FIELDS, lambda asked: _of(Reason.SCHEDULE, schedule_problems, asked)),
    Rule(
        (
            *("pp", "dp", "micro_batch_size", "schedule", "vpp", "layers_per_stage"),
            *("placement", "schedule_file", "microbatch_group_size", "extra_warm_up"),
        ),
        lambda asked: _pipeline(asked.model, asked.job, asked.stack, asked.layout),
    ),
    Rule(COPIES_FIELDS, lambda asked: _of(Reason.SCHEDULE, copies_problems, asked)),
    Rule(
        ("pp", "dp", "cp", "zero_stage", "shard_size", "data_parallel", "sync_every"),
        lambda asked: _data(asked.stack, asked.layout),
    ),
    Rule(
        ("sequence_parallel", "recompute"),
        lambda asked: _offered(asked.stack, asked.layout),
    ),
    Rule(
        ("pp", "schedule", "placement", "vpp", "layers_per_stage", *RECOMPUTE_FIELDS),
        lambda asked: _of(Reason.RECOMPUTE, recompute_problems, asked),
    ),
    Rule(NUMBER_FIELDS, lambda asked: _of(Reason.NUMBERS, number_problems, asked)),
    Rule(
        ("pp", "zero_stage", "recompute", "offload_layers", "optimizer_offload"),
        lambda asked: _of(Reason.OFFLOAD, offload_problems, asked),
    ),
)
"""All rules, in the order in which the planner settles fields: tp, pp, cp and dp first, then
sequence_parallel, experts, micro-batch, schedule, data parallel, recomputation, offload."""


def violations(
    model: ModelSpec, job: TrainingJob, stack: Stack, layout: ParallelLayout
) -> Iterator[Violation]:
    """Yield what a layout breaks of `RULES`, in their order."""
    asked = Asked(model=model, job=job, stack=stack, layout=layout)
    for rule in RULES:
        yield from rule.broken(asked)


def _of(
    reason: Reason,
    problems: Callable[[ModelSpec, TrainingJob, Stack, ParallelLayout], Iterator[Problem]],
    asked: Asked,
) -> Iterator[Violation]:
    """Yield problems that another file finds, all under one reason."""
    for problem in problems(asked.model, asked.job, asked.stack, asked.layout):
        yield Violation(reason=reason, problem=problem)


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
        fix = f"tp of {listed(legal)}"
        if reason is Reason.HEADS and divisors != legal:
            fix += f" (by its {heads} query heads alone: {listed(divisors)})"
        yield _violation(reason, "layout.tp", found, rule, fix)


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
            case MlaSpec() as latent:
                if latent.num_attention_heads % tp:
                    found = f"{latent.num_attention_heads} heads, tp {tp}"
                    yield Reason.HEADS, found, "heads must divide by tp"
            case LinearSpec() | None:
                pass
        match layer.mlp:
            case MlpSpec() as mlp if mlp.intermediate_size % tp:
                found = f"width {mlp.intermediate_size}, tp {tp}"
                yield Reason.WIDTH, found, "the MLP's width must divide by tp"
            case MoeSpec() as moe if moe.shared_intermediate_size % tp:
                found = f"width {moe.shared_intermediate_size}, tp {tp}"
                yield Reason.WIDTH, found, "the shared experts' width must divide by tp"
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
    for problem in context_problems(model, job, layout):
        yield Violation(reason=Reason.CONTEXT, problem=problem)


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
    micro_batches = layout.micro_batches(job.global_batch_size)
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
            "zero_stage of " + ", ".join(map(str, offered)) if offered else "pp = 1",
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
