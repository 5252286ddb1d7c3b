"""Memory of the stages of a step program, from the passes that are priced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from simulator.cost.segment_cache import SegmentCache
from simulator.cost.step_costs import StepCosts
from simulator.parallel.layout import ParallelLayout
from simulator.parallel.memory import (
    NOTHING,
    ChunkMemory,
    InFlight,
    StageHeld,
    Working,
    reserved_bytes,
    stage_held,
    stage_memory,
    stage_working,
)
from simulator.parallel.offload import staged_bytes
from simulator.parallel.program import StepProgram
from simulator.parallel.segments import Segment
from simulator.parallel.shard import casts_in_each_pass
from simulator.results import MemoryUse
from simulator.schedule.memory import fullest_moments, fullest_of_stages
from simulator.schedule.registry import schedule_options

ProgramOf = Callable[[ParallelLayout], StepProgram]
_PIPELINE = ("pp", "vpp", "schedule", "schedule_file", "placement", "layers_per_stage")
_HELD = itemgetter(
    *_PIPELINE,
    *("tp", "cp", "dp", "ep", "zero_stage", "shard_size", "data_parallel", "optimizer_offload"),
)
"""All that decides what a stage holds before any pass, with the tp of the experts."""
_TAKEN = itemgetter(
    *_PIPELINE,
    *("tp", "cp", "dp", "ep", "etp", "sequence_parallel", "cp_comm_type", "cp_inner"),
    *("micro_batch_size", "microbatch_group_size", "extra_warm_up", "offload_layers"),
    *("recompute", "recompute_modules", "recompute_method", "recompute_num_layers"),
)
"""All that decides what the passes take, with whether they cast weights anew."""


class Memories:
    """Memory of layouts of one model, job, stack and machine; keeps what they have in common."""

    def __init__(self, costs: StepCosts) -> None:
        self._costs = costs
        self._chunks = SegmentCache[ChunkMemory]()
        self._stages_held: dict[tuple[Any, ...], tuple[StageHeld, ...]] = {}
        self._stages_taken: dict[tuple[Any, ...], tuple[Working, ...]] = {}

    def of_stages(self, program: StepProgram) -> tuple[MemoryUse, ...]:
        """Return the memory of one rank of each stage."""
        parts, moments = self._chunk_memories(program), self._moments(program)
        found = []
        for stage in range(program.layout.pp):
            chunks = [parts[id(chunk)] for chunk in program.stage_chunks(stage)]
            fullest = max(moments[stage], key=lambda moment: moment.bytes(chunks))
            found.append(stage_memory(program, stage, chunks, fullest))
        return tuple(found)

    def of_chunks(self, program: StepProgram, stage: int) -> tuple[ChunkMemory, ...]:
        """Return the activations of one micro-batch in each chunk of a stage."""
        parts = self._chunk_memories(program)
        return tuple(parts[id(chunk)] for chunk in program.stage_chunks(stage))

    def peak(self, layout: ParallelLayout, program_of: ProgramOf) -> float:
        """Return the reserved bytes of the fullest stage of a layout, and nothing else.

        What a stage holds and what its passes take depend on different fields of the layout. Both
        are computed once for equal ones, so that most layouts of a search need no program.
        """
        held, taken = self._held(layout, program_of), self._taken(layout, program_of)
        memory, offloaded = self._costs.stack.memory, layout.optimizer_offload
        return max(
            [
                reserved_bytes(stage.states(offloaded), stage.gathered, working, memory)
                for stage, working in zip(held, taken, strict=True)
            ]
        )

    def states(self, layout: ParallelLayout, program_of: ProgramOf) -> float:
        """Return the reserved bytes of the fullest stage before any pass.

        It is part of `peak`, and the same for all micro-batch sizes, recomputation, offload
        of activations, sequence parallelism and exchanges of context parallelism.
        """
        memory, offloaded = self._costs.stack.memory, layout.optimizer_offload
        return max(
            reserved_bytes(stage.states(offloaded), stage.gathered, NOTHING, memory)
            for stage in self._held(layout, program_of)
        )

    def _held(self, layout: ParallelLayout, program_of: ProgramOf) -> tuple[StageHeld, ...]:
        """Return what the first of each run of stages with equal chunks holds."""
        key = (_HELD(layout.__dict__), layout.expert_tp)
        found = self._stages_held.get(key)
        if found is None:
            program = program_of(layout)
            found = tuple(stage_held(program, first) for first, _ in program.runs_of_stages())
            self._stages_held[key] = found
        return found

    def _taken(self, layout: ParallelLayout, program_of: ProgramOf) -> tuple[Working, ...]:
        """Return what the passes of each run of stages with equal chunks take at most.

        Neighbouring stages with equal chunks differ only in what they hold in flight, so that of
        those the one that holds most is looked at alone.
        """
        key = (_TAKEN(layout.__dict__), casts_in_each_pass(layout, self._costs.job))
        found = self._stages_taken.get(key)
        if found is None:
            found = self._stages_taken[key] = tuple(self._working(program_of(layout)))
        return found

    def _working(self, program: StepProgram) -> Iterator[Working]:
        layout = program.layout
        parts, options = self._chunk_memories(program), schedule_options(layout)
        pipeline = (layout.effective_schedule, layout.pp, layout.vpp, program.micro_batches)
        for run in program.runs_of_stages():
            chunks = [parts[id(chunk)] for chunk in program.stage_chunks(run[0])]
            alike = all(chunk is chunks[0] for chunk in chunks)
            moments = fullest_of_stages(*pipeline, options=options, stages=run, alike=alike)
            fullest = moments[0]
            if len(moments) > 1:
                fullest = max(moments, key=lambda moment: moment.bytes(chunks))
            yield stage_working(chunks, fullest)

    def _moments(self, program: StepProgram) -> Sequence[Sequence[InFlight]]:
        """Return for each stage the moments at which it may be fullest."""
        layout = program.layout
        name, options = layout.effective_schedule, schedule_options(layout)
        return fullest_moments(name, layout.pp, layout.vpp, program.micro_batches, options)

    def _chunk_memories(self, program: StepProgram) -> dict[int, ChunkMemory]:
        distinct = {id(chunk): chunk for chunk in program.chunks}
        return {
            key: self._chunks.get(
                program.shard, chunk.whole, partial(self._chunk_memory, program, chunk.whole)
            )
            for key, chunk in distinct.items()
        }

    def _chunk_memory(self, program: StepProgram, whole: Segment) -> ChunkMemory:
        parts = [(priced.passes, n) for priced, n in self._costs.parts(program, whole)]
        # The losses of multi-token prediction are one graph: all logits live until backward.
        logits = parts[-1][0].transient * parts[-1][1] if whole.head else 0.0
        inner = parts[:-1] if whole.head else parts
        return ChunkMemory(
            kept=sum(passes.kept * n for passes, n in parts),
            transient=max((passes.transient for passes, _ in inner), default=0.0),
            logits=logits,
            staged=staged_bytes((passes.offloaded, n) for passes, n in parts),
            offloaded=sum(passes.offloaded * n for passes, n in parts),
            kept_for_weights=sum(passes.kept_for_weights * n for passes, n in parts),
        )
