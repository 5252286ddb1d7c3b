"""What runs inside a pass and when: operators and collectives as spans, for timelines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from simulator.cost.blocks import BlockCost
from simulator.cost.step_costs import StepCosts
from simulator.parallel.program import StepProgram
from simulator.parallel.segments import Segment
from simulator.results import Category, Span

OPERATOR, COLLECTIVE = "operator", "collective"
"""Streams of the spans inside a pass."""
_FORWARD, _BACKWARD = "forward", "backward"
_INPUT, _WEIGHT = "backward_input", "backward_weight"
_COMMUNICATION = (
    Category.TENSOR_COMM,
    Category.CONTEXT_COMM,
    Category.EXPERT_COMM,
    Category.HOST_COMM,
)


def operator_spans(
    costs: StepCosts, program: StepProgram, spans: Iterable[Span], limit: int
) -> tuple[Span, ...]:
    """Return what runs inside the passes of the first `limit` micro-batches among `spans`.

    Layers of a stage that are equal stand next to each other. A stage that runs slower than its
    cost says is stretched evenly. A collective that hides behind operators overlaps them.
    """
    passes = [
        span
        for span in spans
        if span.name in (_FORWARD, _BACKWARD, _INPUT, _WEIGHT)
        and span.chunk is not None
        and span.micro_batch is not None
        and span.micro_batch < limit
    ]
    passes.sort(key=lambda span: (*_pass_key(span), span.start))
    found: list[Span] = []
    for _, pieces in groupby(passes, key=_pass_key):
        parts = list(pieces)
        for span, segment in zip(parts, _segments(program, parts), strict=True):
            found += _inside(costs, program, span, segment)
    return tuple(found)


def _pass_key(span: Span) -> tuple[str, int, int]:
    return span.name, span.chunk or 0, span.micro_batch or 0


def _segments(program: StepProgram, parts: Sequence[Span]) -> tuple[Segment, ...]:
    """Return what each part of one pass runs: the whole chunk, or its segments in their order."""
    chunk = program.chunks[parts[0].chunk or 0]
    if len(parts) == 1:
        return (chunk.whole,)
    # Parts of no duration have no span: then which part is which is not known.
    if len(parts) != len(chunk.segments):
        return (Segment(layers=(), parameters=0.0),) * len(parts)
    return chunk.segments if parts[0].name == _FORWARD else chunk.segments[::-1]


def _inside(costs: StepCosts, program: StepProgram, span: Span, segment: Segment) -> Iterator[Span]:
    blocks = list(_blocks(costs, program, segment, span.name))
    total = sum(block.seconds for block, _ in blocks)
    stretch = (span.stop - span.start) / total if total else 1.0
    clock = 0.0
    for block, prefix in blocks:
        for piece in block.pieces:
            start = span.start + (clock + piece.offset) * stretch
            communicates = piece.category in _COMMUNICATION
            yield Span(
                stage=span.stage,
                stream=COLLECTIVE if communicates else OPERATOR,
                name=prefix + piece.name,
                start=start,
                stop=min(start + piece.seconds * stretch, span.stop),
                micro_batch=span.micro_batch,
                chunk=span.chunk,
            )
        clock += block.seconds


def _blocks(
    costs: StepCosts, program: StepProgram, segment: Segment, kind: str
) -> Iterator[tuple[BlockCost, str]]:
    """Yield the blocks of a pass in the order in which they run, with a prefix for their names."""
    parts = costs.parts(program, segment)
    if kind == _FORWARD:
        for priced, count in parts:
            yield from [(priced.forward, "")] * count
        return
    if kind in (_INPUT, _WEIGHT):
        for priced, count in reversed(parts):
            of_input, of_weights = costs.split_pass(priced)
            if kind == _INPUT:
                yield from [(priced.recompute, "recompute "), (of_input, "")] * count
            else:
                yield from [(of_weights, "")] * count
        return
    for priced, count in reversed(parts):
        yield from [(priced.recompute, "recompute "), (priced.backward, "")] * count
