"""Bytes of a segment's gradients and parameters on the wire; routed experts apart."""

from __future__ import annotations

from typing import NamedTuple

from simulator.parallel.program import StepProgram
from simulator.parallel.segments import Segment
from simulator.parallel.states import segment_matrices, trained_narrow


class Payload(NamedTuple):
    """Bytes of all but routed experts, and of those: two groups of data ranks."""

    rest: float
    experts: float


def reduced(program: StepProgram, segment: Segment) -> Payload:
    """Return the bytes of a segment's gradients; frozen weights have none.

    PowerSGD sends two factors, (k, r) and (n, r), of each (k, n) gradient, and vectors and tables
    whole. Source: Vogels et al. 2019, algorithm 1; PyTorch 2.5
    torch/distributed/algorithms/ddp_comm_hooks/powerSGD_hook.py (`powerSGD_hook`).
    """
    element, rank = program.numbers.reduce, program.job.powersgd_rank
    if rank is None:
        return Payload(element * segment.trained, element * segment.trained_experts)
    shapes = segment_matrices(program, segment)
    whole = sum(k * n * count for (k, n), count in shapes.items())
    factors = sum(min(rank, k, n) * (k + n) * count for (k, n), count in shapes.items())
    return Payload(element * (segment.trained - whole + factors), 0.0)


def gathered(program: StepProgram, segment: Segment) -> Payload:
    """Return the bytes of a segment's parameters that sharded ranks gather.

    ZeRO-3 gathers all; ZeRO-1 and 2 what was updated, of which narrow weights are those that are
    trained: all or, beside adapters, none.
    """
    numbers = program.numbers
    if program.shards_parameters:
        rest = numbers.gathered(segment.parameters, segment.narrow)
        return Payload(rest, numbers.gathered(segment.expert_parameters, segment.narrow_experts))
    narrow = experts = 0.0
    if numbers.narrow_gather != numbers.gather:
        narrow = trained_narrow(program, segment)
        experts = segment.narrow_experts if segment.trained_experts else 0.0
    return Payload(
        numbers.gathered(segment.trained, narrow),
        numbers.gathered(segment.trained_experts, experts),
    )


def updated(program: StepProgram, segment: Segment) -> Payload:
    """Return the bytes of a segment's trained parameters, as replicas average or copy them."""
    element = program.numbers.parameter
    return Payload(element * segment.trained, element * segment.trained_experts)
