"""Memory of one rank of each stage at its peak, from the same passes that are timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from simulator.parallel.program import StepProgram
from simulator.results import MemoryUse


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkMemory:
    """Bytes of activations of one micro-batch in one chunk."""

    kept: float
    """Between its forward and its backward pass."""
    transient: float
    """More while its backward pass runs: the largest recomputed layer."""
    logits: float
    """While the loss is computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """Activations that a stage holds at its worst moment."""

    by_chunk: Mapping[int, int]
    """Chunk of the stage (0 to vpp - 1) -> micro-batches alive."""
    moment: str


def stage_memory(
    program: StepProgram, stage: int, chunks: Sequence[ChunkMemory], in_flight: InFlight
) -> MemoryUse:
    """Return the bytes of one rank of `stage` at its peak.

    Weights, gradients and states are divided as the ZeRO stage says: 1 the states, 2 also the
    gradients, 3 also the weights, of which then only the gathered segments are whole.
    """
    numerics, memory = program.stack.numerics, program.stack.memory
    layout, shards = program.layout, program.data_group.size
    peers = layout.tp * layout.cp * layout.dp
    parameters = program.stage_parameters(stage)
    divide = [shards if layout.zero_stage >= level else 1 for level in (1, 2, 3)]
    weights = parameters * numerics.parameter_bytes
    gathered = 0.0
    if program.shards_parameters:
        gathered = _gathered(program, stage)
        weights = 0.0 if numerics.master_bytes else weights / divide[2]
    states = numerics.master_bytes + numerics.state_bytes * program.job.optimizer.states
    activations = sum(n * chunks[c].kept for c, n in in_flight.by_chunk.items())
    transient = max(chunk.transient for chunk in chunks)
    use = MemoryUse(
        stage=stage,
        first_rank=stage * peers,
        last_rank=(stage + 1) * peers - 1,
        weights=weights,
        gradients=parameters * numerics.gradient_bytes / divide[1],
        optimizer=parameters * states / divide[0],
        activations=activations,
        transient=transient + gathered,
        logits=max(chunk.logits for chunk in chunks),
        fragmentation=0.0,
        context=memory.context,
        moment=in_flight.moment,
    )
    return _with_fragmentation(use, memory.fragmentation)


def _gathered(program: StepProgram, stage: int) -> float:
    """Whole parameters of the segments gathered at once, and one segment's whole gradient."""
    numerics = program.stack.numerics
    segments = [s for chunk in program.stage_chunks(stage) for s in chunk.segments]
    largest = max(segment.parameters for segment in segments)
    alive = 1 + min(program.stack.overlap.prefetch, len(segments) - 1)
    return largest * (alive * numerics.parameter_bytes + numerics.reduce_bytes)


def _with_fragmentation(use: MemoryUse, factor: float) -> MemoryUse:
    return replace(use, fragmentation=use.allocated * (factor - 1.0))
