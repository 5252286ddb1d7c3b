"""What a simulated step is made of, beyond its totals: operators, and memory over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from simulator.api import Forecaster
from simulator.cost.blocks import BlockCost, KernelCosts
from simulator.cost.machine import Machine
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.memory import ChunkMemory, InFlight, stage_held, stage_working
from simulator.parallel.program import StepProgram
from simulator.parallel.segments import Segment
from simulator.parallel.work import Block, CommWork
from simulator.results import (
    Category,
    MemoryCurve,
    MemoryUse,
    OperatorUse,
    Span,
    StepResult,
)

_FORWARD, _BACKWARD = "forward", "backward"
_INPUT, _WEIGHT = "backward_input", "backward_weight"
_RECOMPUTE = "recompute"
_PASSES = (_FORWARD, _BACKWARD, _INPUT, _WEIGHT)


def operators_of(forecaster: Forecaster, layout: ParallelLayout, stage: int) -> list[OperatorUse]:
    """Return what one rank of a stage runs in the passes of a step; those alike are one entry.

    With the launch gaps of `Breakdown` their exposed seconds add up to its passes, where the stage
    runs at its own pace; the optimizer and what is between passes is not among them.
    """
    machine = forecaster.machine_of(layout, stage)
    program = machine.programs.of(layout)
    pipeline = layout.pipeline
    passes = program.micro_batches * pipeline.way / pipeline.places
    found: dict[tuple[str, str, Category], OperatorUse] = {}
    for chunk in program.stage_chunks(stage):
        for use in _uses(machine, program, chunk.whole):
            scaled = _times(use, passes)
            key = (use.phase, use.name, use.category)
            found[key] = _plus(found[key], scaled) if key in found else scaled
    return sorted(found.values(), key=lambda use: -use.seconds)


def _uses(machine: Machine, program: StepProgram, segment: Segment) -> Iterator[OperatorUse]:
    """Yield the pieces of one micro-batch's passes over a segment."""
    kernels = machine.costs.kernels
    for priced, count in machine.costs.parts(program, segment):
        passes = priced.passes
        for phase, block, cost in (
            (_FORWARD, passes.forward, priced.forward),
            (_BACKWARD, passes.backward, priced.backward),
            (_RECOMPUTE, passes.recompute, priced.recompute),
        ):
            for use in _pieces(kernels, phase, block, cost):
                yield _times(use, count)


def _pieces(
    kernels: KernelCosts, phase: str, block: Block, cost: BlockCost
) -> Iterator[OperatorUse]:
    for piece, priced in zip(block.pieces, cost.pieces, strict=True):
        yield OperatorUse(
            name=piece.name,
            phase=phase,
            category=priced.category,
            calls=piece.count,
            flops=0.0 if isinstance(piece, CommWork) else piece.flops,
            bytes=0.0 if isinstance(piece, CommWork) else kernels.operator_bytes(piece),
            seconds=priced.seconds,
            exposed=priced.exposed,
        )


def _times(use: OperatorUse, count: float) -> OperatorUse:
    return replace(
        use,
        calls=use.calls * count,
        flops=use.flops * count,
        bytes=use.bytes * count,
        seconds=use.seconds * count,
        exposed=use.exposed * count,
    )


def _plus(one: OperatorUse, other: OperatorUse) -> OperatorUse:
    return replace(
        one,
        calls=one.calls + other.calls,
        flops=one.flops + other.flops,
        bytes=one.bytes + other.bytes,
        seconds=one.seconds + other.seconds,
        exposed=one.exposed + other.exposed,
    )


def memory_curves(
    forecaster: Forecaster, layout: ParallelLayout, result: StepResult
) -> tuple[MemoryCurve, ...]:
    """Return the memory of each stage over a simulated step, from the passes that it played.

    The highest point of a curve is the stage's `allocated`: a forward pass brings what it keeps,
    its backward pass takes it away at its end, and while a backward pass runs there are also
    recomputed activations, gathered parameters and logits. Of a stage on several machines it is
    the one that `StepResult.memory` is of.
    """
    spans: list[list[Span]] = [[] for _ in range(layout.pp)]
    for span in result.spans:
        spans[span.stage].append(span)
    found = []
    for use, machine in zip(result.memory, _machines(forecaster, layout), strict=True):
        program = machine.programs.of(layout)
        chunks = machine.memories.of_chunks(program, use.stage)
        found.append(_curve(program, use, chunks, spans[use.stage]))
    return tuple(found)


def _machines(forecaster: Forecaster, layout: ParallelLayout) -> Sequence[Machine]:
    """Return the machine that each stage's memory is said of."""
    if forecaster.mixed is not None:
        return forecaster.mixed.fullest_machines(layout)
    return [forecaster.machine_of(layout, stage) for stage in range(layout.pp)]


@dataclass(frozen=True, slots=True)
class _Change:
    """What happens to a stage's memory at one time; earlier kinds come first."""

    time: float
    begins: bool
    name: str
    chunk: int


def _curve(
    program: StepProgram, use: MemoryUse, chunks: Sequence[ChunkMemory], spans: Iterable[Span]
) -> MemoryCurve:
    """Return the memory of a stage, of which `spans` are."""
    places = program.layout.pipeline.places_of(use.stage)
    changes = sorted(_changes(spans, places), key=lambda change: (change.time, change.begins))
    alive, waiting = dict.fromkeys(range(len(chunks)), 0), dict.fromkeys(range(len(chunks)), 0)
    running: list[str] = []
    gathered, states = stage_held(program, use.stage).gathered, _states(use)
    times, levels = [0.0], [states]
    for change in changes:
        _apply(change, alive, waiting, running)
        moment = InFlight(
            by_chunk={c: n for c, n in alive.items() if n},
            for_weights={c: n for c, n in waiting.items() if n},
            moment="",
        )
        level = states + moment.bytes(chunks) + _working(chunks, moment, gathered, running)
        if change.time == times[-1]:
            levels[-1] = level
        else:
            times.append(change.time)
            levels.append(level)
    return MemoryCurve(stage=use.stage, times=tuple(times), allocated=tuple(levels))


def _states(use: MemoryUse) -> float:
    return use.weights + use.gradients + use.optimizer


def _working(
    chunks: Sequence[ChunkMemory], moment: InFlight, gathered: float, running: Sequence[str]
) -> float:
    """Return the bytes that are there only while passes run."""
    if not running:
        return 0.0
    if set(running) == {_FORWARD}:
        return gathered
    working = stage_working(chunks, moment)
    return working.transient + gathered + working.logits


def _changes(spans: Iterable[Span], places: Sequence[int]) -> Iterator[_Change]:
    """Yield the beginning and the end of each pass, however many parts it was played in."""
    ends: dict[tuple[str, int, int], tuple[float, float]] = {}
    for span in spans:
        if span.name in _PASSES and span.chunk is not None and span.micro_batch is not None:
            key = (span.name, span.chunk, span.micro_batch)
            start, stop = ends.get(key, (span.start, span.stop))
            ends[key] = (min(start, span.start), max(stop, span.stop))
    for (name, place, _), (start, stop) in ends.items():
        chunk = places.index(place)
        yield _Change(start, True, name, chunk)
        yield _Change(stop, False, name, chunk)


def _apply(
    change: _Change, alive: dict[int, int], waiting: dict[int, int], running: list[str]
) -> None:
    if change.begins:
        running.append(change.name)
        alive[change.chunk] += change.name == _FORWARD
        return
    running.remove(change.name)
    alive[change.chunk] -= change.name in (_BACKWARD, _INPUT)
    waiting[change.chunk] += (change.name == _INPUT) - (change.name == _WEIGHT)
