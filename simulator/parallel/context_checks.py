"""Which context parallelism a model and a job allow, each refusal with its legal alternatives.

What an exchange offers is what Transformer Engine's of that name does.
Source: Transformer Engine 2.8 pytorch/attention/dot_product_attention/context_parallel.py, the
assertions of `attn_forward_func_with_cp` and of the functions it calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd

from simulator.errors import Problem
from simulator.parallel.layout import ContextExchange, ParallelLayout
from simulator.workload.job import TrainingJob
from simulator.workload.layer import AttentionSpec, MlaSpec
from simulator.workload.model import ModelSpec

_RING, _GATHER = ContextExchange.RING, ContextExchange.ALL_GATHER
_ULYSSES, _HIERARCHICAL = ContextExchange.ULYSSES, ContextExchange.HIERARCHICAL
_WITH_WINDOWS = (_GATHER, _ULYSSES)
_WITH_DOCUMENTS = (_RING, _ULYSSES)
_WITH_LATENT = (_RING, _HIERARCHICAL)
_WITH_SINKS = (_ULYSSES,)


def context_problems(
    model: ModelSpec, job: TrainingJob, layout: ParallelLayout
) -> Iterator[Problem]:
    """Yield what is wrong with the documents of `job`, and with how `layout` splits sequences."""
    yield from _documents(job)
    if layout.cp == 1:
        yield from _unused(layout)
        return
    yield from _inner(layout)
    yield from _heads(model, layout)
    yield from _offered(model, job, layout)
    yield from _pieces(model, job, layout)


def _documents(job: TrainingJob) -> Iterator[Problem]:
    length = job.document_length
    if length is not None and length > job.seq_length:
        yield Problem(
            key="job.document_length",
            found=str(length),
            rule=f"documents are packed into sequences of seq_length = {job.seq_length}",
            fix=f"at most {job.seq_length}",
        )


def _unused(layout: ParallelLayout) -> Iterator[Problem]:
    if layout.cp_comm_type is not _RING:
        rule = "cp = 1 exchanges nothing"
        yield Problem(
            key="layout.cp_comm_type",
            found=layout.cp_comm_type,
            rule=rule,
            fix="leave it out, or cp of 2 or more",
        )
    if layout.cp_inner is not None and layout.cp_comm_type is not _HIERARCHICAL:
        yield _inner_unused(layout)


def _inner_unused(layout: ParallelLayout) -> Problem:
    rule = f'cp_inner needs cp_comm_type "{_HIERARCHICAL}"'
    return Problem(key="layout.cp_inner", found=str(layout.cp_inner), rule=rule, fix="leave it out")


def _inner(layout: ParallelLayout) -> Iterator[Problem]:
    """Both levels of the hierarchy need two ranks or more, else it is plain a2a or p2p."""
    inner = layout.cp_inner
    if layout.cp_comm_type is not _HIERARCHICAL:
        if inner is not None:
            yield _inner_unused(layout)
        return
    legal = [n for n in range(2, layout.cp) if layout.cp % n == 0]
    if inner not in legal:
        yield Problem(
            key="layout.cp_inner",
            found="none" if inner is None else str(inner),
            rule=f"must divide cp = {layout.cp}, and be neither 1 nor cp",
            fix="cp_inner of " + ", ".join(map(str, legal))
            if legal
            else 'cp_comm_type "p2p" or "a2a"',
        )


def _heads(model: ModelSpec, layout: ParallelLayout) -> Iterator[Problem]:
    """An all-to-all spreads query heads and key-value heads over its ranks."""
    inner = layout.cp_inner or 1
    ranks = {_ULYSSES: layout.cp, _HIERARCHICAL: inner}.get(layout.cp_comm_type, 1)
    for heads, kv in sorted(_local_heads(model, layout.tp)):
        shared = gcd(heads, kv)
        if shared % ranks:
            size = "cp" if layout.cp_comm_type is _ULYSSES else "cp_inner"
            legal = [n for n in range(1, shared + 1) if shared % n == 0]
            yield Problem(
                key=f"layout.{size}",
                found=f"{heads} query and {kv} key-value heads a tp rank, {size} {ranks}",
                rule=f'"{layout.cp_comm_type}" needs both to divide by {size}',
                fix=f'{size} of {", ".join(map(str, legal))}, a smaller tp, or cp_comm_type "p2p"',
            )


def _local_heads(model: ModelSpec, tp: int) -> set[tuple[int, int]]:
    """Return the query and key-value heads of a tp rank, of each kind of layer."""
    found = set()
    for layer in model.layer_groups():
        match layer.attention:
            case AttentionSpec() as grouped:
                kv = max(1, grouped.num_key_value_heads // tp)
                found.add((grouped.num_attention_heads // tp, kv))
            case MlaSpec() as latent:
                found.add((latent.num_attention_heads // tp,) * 2)
            case _:
                pass
    return found


def _offered(model: ModelSpec, job: TrainingJob, layout: ParallelLayout) -> Iterator[Problem]:
    """Name what the exchange does not do, of what the model and the job need."""
    attentions = [layer.attention for layer in model.layer_groups()]
    grouped = [a for a in attentions if isinstance(a, AttentionSpec)]
    windows = {a.window for a in grouped if a.window is not None and a.window < job.seq_length}
    chunks = {a.chunk for a in grouped if a.chunk is not None and a.chunk < job.seq_length}
    if windows:
        found = f"windows of {_listed(windows)} tokens"
        yield from _missing("sliding-window attention", found, _WITH_WINDOWS, layout)
    if _packs(job):
        found = f"documents of {job.document_length} tokens"
        yield from _missing("packed documents", found, _WITH_DOCUMENTS, layout)
    if chunks:
        found = f"chunks of {_listed(chunks)} tokens"
        yield from _missing("chunked attention", found, _WITH_DOCUMENTS, layout)
    if any(isinstance(a, MlaSpec) for a in attentions):
        yield from _missing("latent attention", "mla", _WITH_LATENT, layout)
    if any(a.sinks for a in grouped):
        yield from _missing("attention sinks", "attention_sinks", _WITH_SINKS, layout)


def _missing(
    what: str, found: str, offers: tuple[ContextExchange, ...], layout: ParallelLayout
) -> Iterator[Problem]:
    if layout.cp_comm_type not in offers:
        others = " or ".join(f'"{exchange}"' for exchange in offers)
        yield Problem(
            key="layout.cp_comm_type",
            found=f"{layout.cp_comm_type}, {found}",
            rule=f'"{layout.cp_comm_type}" has no {what} (Transformer Engine)',
            fix=f"cp_comm_type {others}, or cp = 1",
        )


def _pieces(model: ModelSpec, job: TrainingJob, layout: ParallelLayout) -> Iterator[Problem]:
    """Each document, and each chunk, is cut into 2 cp pieces like a sequence of its own."""
    pieces = 2 * layout.cp
    lengths = {"job.document_length": job.document_length} if _packs(job) else {}
    for layer in model.layer_groups():
        attention = layer.attention
        if isinstance(attention, AttentionSpec) and attention.chunk is not None:
            lengths["model.attention_chunk_size"] = attention.chunk
    for key, length in lengths.items():
        if length is not None and length < job.seq_length and length % pieces:
            below = length // pieces * pieces
            nearest = [str(n) for n in (below, below + pieces) if 0 < n <= job.seq_length]
            yield Problem(
                key=key,
                found=str(length),
                rule=f"must divide by 2 x cp = {pieces}: documents are spread over the cp ranks",
                fix=" or ".join([*nearest, "smaller cp"]),
            )


def _packs(job: TrainingJob) -> bool:
    return job.document_length is not None and job.document_length < job.seq_length


def _listed(lengths: set[int]) -> str:
    return ", ".join(map(str, sorted(lengths)))
