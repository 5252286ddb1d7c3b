"""Memory of one rank of each stage at its peak, from the same passes that are timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from simulator.parallel.layout import ZERO_GRADIENTS, ZERO_PARAMETERS, ZERO_STATES
from simulator.parallel.numbers import Numbers
from simulator.parallel.program import StepProgram
from simulator.parallel.segments import Segment
from simulator.parallel.states import Group, groups, optimizer_bytes, sharded
from simulator.results import MemoryUse
from simulator.workload.stack import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkMemory:
    """Bytes of activations of one micro-batch in one chunk."""

    kept: float
    """Between its forward and its backward pass."""
    transient: float
    """More while its backward pass runs: the largest recomputed layer."""
    logits: float
    """While the loss is computed."""
    staged: float = 0.0
    """Of offloaded layers, on their way to the host or back."""
    offloaded: float = 0.0
    """In host memory, between its forward and its backward pass."""
    kept_for_weights: float = 0.0
    """Between its input gradient and its weight gradient, where the two are apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InFlight:
    """Activations that a stage holds at its worst moment."""

    by_chunk: Mapping[int, int]
    """Chunk of the stage (0 to vpp - 1) -> micro-batches alive."""
    for_weights: Mapping[int, int] = field(default_factory=dict)
    """Chunk of the stage -> micro-batches that wait for their weight gradients alone."""
    moment: str

    @property
    def count(self) -> int:
        """Micro-batches of all chunks together, waiting for weight gradients or not."""
        return sum(self.by_chunk.values()) + sum(self.for_weights.values())

    def bytes(self, chunks: Sequence[ChunkMemory]) -> float:
        """Return the bytes of activations of this moment."""
        alive = sum([n * chunks[c].kept for c, n in self.by_chunk.items()])
        return alive + sum([n * chunks[c].kept_for_weights for c, n in self.for_weights.items()])


def stage_memory(
    program: StepProgram, stage: int, chunks: Sequence[ChunkMemory], in_flight: InFlight
) -> MemoryUse:
    """Return the bytes of one rank of `stage` at its peak.

    Weights, gradients and states are divided as the ZeRO stage says: 1 the states, 2 also the
    gradients, 3 also the weights, of which then only the gathered segments are whole.
    """
    memory, layout = program.stack.memory, program.layout
    peers = layout.tp * layout.cp * layout.dp
    held, working = stage_held(program, stage), stage_working(chunks, in_flight)
    rest, experts = held.rest, held.experts
    waiting = sum(n * chunks[c].offloaded for c, n in in_flight.by_chunk.items())
    updated_here = 1.0 - layout.optimizer_offload
    use = MemoryUse(
        stage=stage,
        first_rank=stage * peers,
        last_rank=(stage + 1) * peers - 1,
        weights=rest.weights + experts.weights,
        gradients=rest.gradients + experts.gradients,
        optimizer=updated_here * (rest.optimizer + experts.optimizer),
        expert_weights=experts.weights,
        expert_gradients=experts.gradients,
        expert_optimizer=updated_here * experts.optimizer,
        activations=working.activations,
        transient=working.transient + held.gathered,
        logits=working.logits,
        fragmentation=0.0,
        context=memory.context,
        moment=in_flight.moment,
        host=waiting + layout.optimizer_offload * (rest.host + experts.host),
    )
    return _with_fragmentation(use, memory.fragmentation)


class Working(NamedTuple):
    """Bytes of one rank of a stage that its passes take, at the worst moment."""

    activations: float
    transient: float
    logits: float


NOTHING = Working(0.0, 0.0, 0.0)
"""Before any pass."""


def stage_working(chunks: Sequence[ChunkMemory], in_flight: InFlight) -> Working:
    """Return what the passes over a stage's chunks take with so many micro-batches in flight."""
    transient = max([chunk.transient for chunk in chunks])
    return Working(
        activations=in_flight.bytes(chunks),
        transient=transient + max([chunk.staged for chunk in chunks]),
        logits=max([chunk.logits for chunk in chunks]),
    )


class StageHeld(NamedTuple):
    """Bytes of one rank of a stage that do not depend on its passes."""

    rest: _Held
    experts: _Held
    gathered: float
    """Whole parameters, and one whole gradient, of what ZeRO-3 has gathered."""

    def states(self, offloaded: float) -> float:
        """Return weights, gradients and states, with a share of the optimizer on the host."""
        here, (rest, experts) = 1.0 - offloaded, self[:2]
        weights, gradients = rest.weights + experts.weights, rest.gradients + experts.gradients
        return weights + gradients + here * (rest.optimizer + experts.optimizer)


def stage_held(program: StepProgram, stage: int) -> StageHeld:
    """Return what a rank of `stage` holds whatever passes it runs."""
    rest, experts = (_held(program, group) for group in groups(program, stage))
    gathered = _gathered(program, stage) if program.shards_parameters else 0.0
    return StageHeld(rest, experts, gathered)


def reserved_bytes(states: float, gathered: float, working: Working, memory: Memory) -> float:
    """Return the bytes that a device loses to a rank: what `MemoryUse.reserved` adds up."""
    activations, transient, logits = working
    allocated = states + activations + (transient + gathered) + logits
    reserved: float = allocated + allocated * (memory.fragmentation - 1.0) + memory.context
    return reserved


def host_bytes(numbers: Numbers, states: float) -> float:
    """Return the host bytes of a parameter that is updated there, of `states` device bytes.

    They are the master and states that leave the device, its pinned gradient, and where the
    device's own parameter is the master, a copy of it.

    Source: Megatron-LM core/optimizer/cpu_offloading/hybrid_optimizer.py (`pin_cpu_grads`,
    `pin_cpu_params`).
    """
    copied = 0.0 if numbers.master else numbers.parameter
    return states + numbers.gradient + copied


class _Held(NamedTuple):
    """Bytes of one rank before any pass."""

    weights: float
    gradients: float
    optimizer: float
    host: float
    """On the host if all of the optimizer is there."""


def _held(program: StepProgram, group: Group) -> _Held:
    """Return what ZeRO leaves one rank of a group of parameters.

    In ZeRO-3 the sharded master is the only copy of what is trained, unless the stack keeps the
    parameters beside it; where it lives on the host the device keeps its own. PowerSGD keeps what
    it left out of each gradient (error feedback).
    """
    numbers, share = program.numbers, partial(sharded, program, group)
    trained, kept = group.trained, 1.0
    alone = numbers.master and not program.stack.numerics.keeps_sharded
    if program.shards_parameters and alone:
        kept = program.layout.optimizer_offload
    weights = numbers.weights(group.parameters, group.narrow)
    if trained:
        weights -= (1.0 - kept) * weights * trained / group.parameters
    gradient = numbers.gradient * (trained + _errors(program, group))
    states = optimizer_bytes(program, group)
    updated = trained * share(ZERO_STATES)
    return _Held(
        weights=weights * share(ZERO_PARAMETERS),
        gradients=gradient * share(ZERO_GRADIENTS),
        optimizer=states,
        host=states + updated * host_bytes(numbers, 0.0),
    )


def _errors(program: StepProgram, group: Group) -> float:
    """Return the numbers of PowerSGD's error feedback: one for each number of a matrix."""
    return group.matrix_parameters if program.job.powersgd_rank else 0.0


def _gathered(program: StepProgram, stage: int) -> float:
    """Whole parameters of the segments gathered at once, and one segment's whole gradient."""
    segments = [s for chunk in program.stage_chunks(stage) for s in chunk.segments]
    alive = 1 + min(program.stack.overlap.prefetch, len(segments) - 1)
    return max(_whole(program, segment, alive) for segment in segments)


def _whole(program: StepProgram, segment: Segment, alive: int) -> float:
    numbers = program.numbers
    narrow = segment.narrow + segment.narrow_experts
    weights = numbers.weights(segment.parameters + segment.expert_parameters, narrow)
    return alive * weights + numbers.reduce * (segment.trained + segment.trained_experts)


def _with_fragmentation(use: MemoryUse, factor: float) -> MemoryUse:
    return replace(use, fragmentation=use.allocated * (factor - 1.0))
